//! What is counted, and that neither cuts nor blocks change it.

use proptest::prelude::*;

use super::{TextClasses, TextCounter};

#[track_caller]
fn check(text: &str, counts: [u32; 10]) {
    assert_eq!(TextClasses::of(text).counts(), counts, "{text}");
}

#[test]
fn units_are_counted() {
    check("", [0; 10]);
    check("Hello, world!", [2, 10, 1, 0, 0, 0, 0, 2, 0, 0]);
    check("1234567 89", [0, 0, 0, 4, 0, 0, 0, 0, 0, 0]);
    check("Müller", [1, 5, 1, 0, 1, 0, 0, 0, 0, 0]);
    check("привет λόγος", [0, 0, 0, 0, 0, 11, 0, 0, 0, 0]);
    check("你好 한글 かな", [0, 0, 0, 0, 0, 0, 6, 0, 0, 0]);
    check("a  b\n\n\tc d", [4, 4, 0, 0, 0, 0, 0, 0, 2, 0]);
    check("→🙂", [0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
}

#[test]
fn parts_add_up() {
    let (left, right) = ("int main() { return 42; }\n\n", "Ärger im Café, 1984");
    let whole = TextClasses::of(left) + TextClasses::of(right);
    assert_eq!(whole, TextClasses::of(&format!("{left}{right}")));
}

fn one_by_one(text: &str) -> TextClasses {
    let mut counter = TextCounter::default();
    text.chars().for_each(|c| counter.push_char(c));
    counter.finish()
}

proptest! {
    /// Letters and blanks mostly, so that blocks are plain, with whatever may stand at their edges.
    #[test]
    fn blocks_and_cuts_change_nothing(text in "([a-zA-Z ,.\t]{1,90}|[0-9]{1,5}|[é× \u{1}→]{1,3}|\n{1,3}){0,12}", cut in 0_usize..400) {
        let whole = one_by_one(&text);
        prop_assert_eq!(TextClasses::of(&text), whole);
        let cut = (0..=cut.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        let mut counter = TextCounter::default();
        counter.push(&text[..cut]);
        counter.push(&text[cut..]);
        prop_assert_eq!(counter.finish(), whole);
    }
}
