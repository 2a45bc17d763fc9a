//! The guards, pair by pair.

use super::{
    Guard,
    words::{DATES, FILLERS, FORMATS, LIMITS, NEGATIONS, NUMBERS, OPENERS, OPPOSITES, UNITS},
};

fn allows(one: &str, other: &str) -> bool {
    let (one, other) = (Guard::of(one), Guard::of(other));
    assert_eq!(one.allows(&other), other.allows(&one));
    one.allows(&other)
}

fn same(one: &str, other: &str) {
    assert!(allows(one, other), "{one} / {other}");
}

fn apart(one: &str, other: &str) {
    assert!(allows(one, one) && allows(other, other));
    assert!(!allows(one, other), "{one} / {other}");
}

#[test]
fn spelling_and_filling_words_do_not_matter() {
    same("How do I turn on dark mode?", "how do i turn on dark mode");
    same("How do I turn on dark mode?", "How do I turn on the dark mode?");
    same("What is the refund policy", "what is our refund policy, please?");
    same("Why don't they work?", "why don’t they work");
    same("You cannot go", "You can't go");
    same("Tell me about my invoice", "tell us about our invoice");
    same("", " ");
}

#[test]
fn negations_and_opposites_matter() {
    apart("The payment is held.", "The payment is not held.");
    apart("Why does it work?", "Why doesn't it work?");
    apart("How do I turn on dark mode?", "How do I turn off dark mode?");
    apart("Is port 6379 open by default?", "Is port 6379 closed by default?");
    apart("Can I take it with alcohol?", "Can I take it without alcohol?");
    apart("Allow only admins to delete", "Allow everyone except admins to delete");
    apart("How do I subscribe to the newsletter?", "How do I unsubscribe from the newsletter?");
    apart("Is it safe to eat?", "Is it unsafe to eat?");
    apart("Is the deposit refundable?", "Is the deposit non-refundable?");
    apart("Who won the men's final", "Who won the women's final");
    apart("a painful cut", "a painless cut");
    apart("Warum geht es", "Warum geht es nicht");
    apart("turn a on and b off", "turn a off and b on");
}

#[test]
fn numbers_names_and_identifiers_matter() {
    apart("Refund for 20 days", "Refund for 30 days");
    apart("Refund for two weeks", "Refund for three weeks");
    apart("What is -5 doubled", "What is 5 doubled");
    apart("Costs $5", "Costs €5");
    apart("Is 1.5 fine", "Is 15 fine");
    apart("Weather in Paris today", "Weather in London today");
    apart("Explain foo_bar", "Explain foo_baz");
    apart("Explain getUser", "Explain getuser");
    apart("Read /etc/hosts now", "Read /etc/passwd now");
    apart("london hotels", "paris hotels");
    apart("It rains. London is grey", "It rains. Paris is grey");
    apart("a + b", "a * b");
    apart("Learn C now", "Learn C++ now");
    apart("Is .5 fine", "Is 5 fine");
    same("Is it 5?", "is it (5)");
}

#[test]
fn quotations_and_code_matter_to_the_byte() {
    apart("Say \"hello\" now", "Say \"Hello\" now");
    apart("Say 'hello' now", "Say 'hallo' now");
    apart("Say “hello” now", "Say “hallo” now");
    apart("Run `ls  x`", "Run `ls x`");
    apart("Fix\n```\nlet a = b;\n```\nnow", "Fix\n```\nlet a =  b;\n```\nnow");
    apart("Say \"open", "Say \"shut");
    apart("Say hello now", "Say \"hello\" now");
    same("Say \"hello\" now", "say \"hello\"  now");
    same("It's the users' choice", "it's the users' choice!");
}

#[test]
fn shared_words_keep_their_order() {
    apart("convert pdf files to word files", "convert word files to pdf files");
    apart("does the dog bite the man", "does the man bite the dog");
}

#[test]
fn the_kind_of_question_matters() {
    apart("When was it built", "Where was it built");
    apart("Why is it built", "How is it built");
    apart("Is it raining", "Can it rain");
    apart("How long is the trip", "Who is on the trip");
    same("How do I order a card", "How can I order a card");
    same("Can I change the name?", "Is it possible to change the name?");
}

#[test]
fn formats_and_languages_matter() {
    apart("Give me the list as JSON", "Give me the list as CSV");
    apart("Say it in French", "Say it in German");
    apart("Sort it in Python", "Sort it in Rust");
    apart("Write a poem on rain", "Write an essay on rain");
    apart("convert json to csv", "convert csv to json");
}

#[test]
fn amounts_are_the_same_in_words_and_digits() {
    same("Is it open for two weeks", "Is it open for 2 weeks");
    same("Remind me at 7am", "remind me at 7 am");
    apart("Remind me at 7am", "Remind me at 7pm");
    apart("Refund after 6 days", "Refund after 6 months");
    apart("Open on Monday", "Open on Tuesday");
    same("Open on Monday", "Open on Mondays");
    apart("Is it monthly", "Is it yearly");
}

#[test]
fn greetings_and_word_order_of_clauses_do_not_matter() {
    same("Do you do takeaway?", "Hello, do you do takeaway please? Thanks!");
    same("Is there a pool at the hotel?", "At the hotel, is there a pool?");
    same("WHAT ARE YOUR OPTIONS TO NORTHERN IRELAND?", "What are your options to Northern Ireland?");
    same("Do You Accept Apple Pay?", "Do you accept Apple Pay?");
}

#[test]
fn the_lists_are_sorted_and_in_lower_case() {
    for list in [NEGATIONS, LIMITS, DATES, UNITS, FORMATS, FILLERS, OPENERS] {
        assert!(list.is_sorted_by(|one, other| one < other));
        assert!(list.iter().all(|word| *word == word.to_lowercase()));
    }
    assert!(NUMBERS.is_sorted_by(|one, other| one.0 < other.0));
    assert!(OPPOSITES.is_sorted_by(|one, other| (one.0, one.1) < (other.0, other.1)));
}
