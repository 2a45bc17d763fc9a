//! The guards, pair by pair.

use super::{Guard, words::WORDS};

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
fn question_words_matter() {
    apart("When was it built", "Where was it built");
    apart("How much is left", "How many is left");
    apart("Is it raining", "Can it rain");
}

#[test]
fn the_list_is_sorted_and_in_lower_case() {
    assert!(WORDS.is_sorted_by(|one, other| one < other));
    assert!(WORDS.iter().all(|word| *word == word.to_lowercase()));
}
