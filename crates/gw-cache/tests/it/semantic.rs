//! The semantic cache: similarity, context, bounds, time, and the embedder's errors.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use async_trait::async_trait;
use gw_cache::{Embedder, SemanticCache, SemanticConfig, SemanticPolicy};
use gw_types::{ErrorKind, GatewayError, Question, RequestId};

use crate::support::{Names, Semantic, TTL, at, question, ready, stored};

#[test]
fn a_hit_carries_its_score() {
    let (semantic, names) = (Semantic::of_words(), Names::of("t"));
    semantic.put(&names, &question("tell me about dark mode please now"), 1, at(0));
    let check = |text: &str, threshold, expected: Option<u32>| {
        let hit = semantic.get_at(&names, &question(text), threshold, at(0));
        assert_eq!(hit, expected.map(|score| (RequestId::from_bits(1), score)), "{text}");
    };
    check("tell me about dark mode please now", 1_000, Some(1_000));
    check("Tell me  about dark mode please now", 1_000, Some(1_000));
    // Six words of seven are the same: 6/7.
    check("tell us about dark mode please now", 857, Some(857));
    check("tell us about dark mode please now", 858, None);
    check("tell something else entirely", 600, None);
}

#[test]
fn the_nearest_wins_and_of_equals_the_newest() {
    let (semantic, names) = (Semantic::of_words(), Names::of("t"));
    semantic.put(&names, &question("tell me about dark mode please now"), 1, at(0));
    semantic.put(&names, &question("tell me about dark mode please today"), 2, at(0));
    semantic.put(&names, &question("tell me about dark mode please again"), 3, at(0));
    let origin = |text: &str| semantic.get_at(&names, &question(text), 700, at(0)).map(|(origin, _)| origin);
    assert_eq!(origin("tell me about dark mode please now"), Some(RequestId::from_bits(1)));
    assert_eq!(origin("tell me about dark mode please again"), Some(RequestId::from_bits(3)));
    // As near to the first as to the third; the second says `today`, which no equal question leaves out.
    assert_eq!(origin("tell me about dark mode please friend"), Some(RequestId::from_bits(3)));
}

#[test]
fn another_context_is_another_question() {
    let (semantic, names) = (Semantic::new(SemanticConfig::default()), Names::of("t"));
    semantic.put(&names, &question("and then"), 1, at(0));
    let elsewhere = Question { context: b"system: be long".to_vec(), ..question("and then") };
    assert_eq!(semantic.get_at(&names, &elsewhere, 0, at(0)), None);
    semantic.put(&names, &elsewhere, 2, at(0));
    assert_eq!(semantic.get(&names, &elsewhere, at(0)), Some(RequestId::from_bits(2)));
    assert_eq!(semantic.get(&names, &question("and then"), at(0)), Some(RequestId::from_bits(1)));
}

#[test]
fn empty_and_endless_questions_miss() {
    let (semantic, names) = (Semantic::new(SemanticConfig::default()), Names::of("t"));
    let endless = "a ".repeat(SemanticCache::QUESTION_BYTES_MAX);
    for text in ["", " \n", endless.as_str()] {
        semantic.put(&names, &question(text), 1, at(0));
        assert_eq!(semantic.get_at(&names, &question(text), 0, at(0)), None);
    }
    assert_eq!(semantic.0.counts().1, 0);
}

#[test]
fn entries_expire_and_leave() {
    let (semantic, names) = (Semantic::new(SemanticConfig::default()), Names::of("t"));
    semantic.put(&names, &question("one thing"), 1, at(0));
    semantic.put(&names, &question("another thing"), 2, at(30));
    let end = at(0).saturating_add(TTL);
    assert!(semantic.get(&names, &question("one thing"), at(59)).is_some());
    assert_eq!(semantic.get(&names, &question("one thing"), end), None);
    assert_eq!(semantic.0.counts(), (1, 1));
    assert!(semantic.get(&names, &question("another thing"), end).is_some());
}

#[test]
fn an_equal_question_replaces_its_entry() {
    let (semantic, names) = (Semantic::new(SemanticConfig::default()), Names::of("t"));
    semantic.put(&names, &question("one thing"), 1, at(0));
    semantic.put(&names, &question("one thing"), 2, at(0));
    assert_eq!(semantic.0.counts(), (1, 1));
    assert_eq!(semantic.get(&names, &question("one thing"), at(0)), Some(RequestId::from_bits(2)));
}

#[test]
fn partitions_hold_a_bounded_number_of_entries_and_bytes() {
    let names = Names::of("t");
    let fill = |config| {
        let semantic = Semantic::new(config);
        for number in 0..10_u32 {
            semantic.put(&names, &question(&format!("thing {number}")), number.into(), at(0));
        }
        let first_and_last =
            ["thing 0", "thing 9"].map(|text| semantic.get(&names, &question(text), at(0)).is_some());
        (semantic.0.counts().1, first_and_last)
    };
    assert_eq!(fill(SemanticConfig { partition_entries_max: 3, ..Default::default() }), (3, [false, true]));
    let (entries, ends) = fill(SemanticConfig { partition_bytes_max: 10_000, ..Default::default() });
    assert!((1..10).contains(&entries));
    assert_eq!(ends, [false, true]);
    for nothing in [
        SemanticConfig { partitions_max: 0, ..Default::default() },
        SemanticConfig { partition_entries_max: 0, ..Default::default() },
        SemanticConfig { partition_bytes_max: 0, ..Default::default() },
    ] {
        assert_eq!(fill(nothing), (0, [false, false]));
    }
}

#[test]
fn the_partition_that_was_used_longest_ago_goes_first() {
    let semantic = Semantic::new(SemanticConfig { partitions_max: 2, ..Default::default() });
    let [one, two, three] = ["one", "two", "three"].map(Names::of);
    semantic.put(&one, &question("a thing"), 1, at(0));
    semantic.put(&two, &question("a thing"), 2, at(0));
    assert!(semantic.get(&one, &question("a thing"), at(0)).is_some());
    semantic.put(&three, &question("a thing"), 3, at(0));
    let there = [&one, &two, &three].map(|names| semantic.get(names, &question("a thing"), at(0)).is_some());
    assert_eq!((there, semantic.0.counts()), ([true, false, true], (2, 2)));
}

/// Answers with a fixed vector, or fails.
#[derive(Debug)]
struct Fixed(Vec<f32>, AtomicUsize);

#[async_trait]
impl Embedder for Fixed {
    async fn embed(&self, text: &str) -> Result<Vec<f32>, GatewayError> {
        self.1.fetch_add(1, Ordering::Relaxed);
        if text == "fail" {
            return Err(GatewayError::new(ErrorKind::Transport, "no embedder"));
        }
        Ok(self.0.clone())
    }
}

#[test]
fn the_embedder_is_asked_only_where_there_is_something_to_compare() {
    let embedder = Arc::new(Fixed(vec![3.0, 4.0], AtomicUsize::new(0)));
    let semantic = SemanticCache::new(SemanticConfig::default(), Arc::clone(&embedder) as Arc<dyn Embedder>);
    let (partition, policy) = (Names::of("t").partition(), SemanticPolicy::default());
    let get = |text: &str| ready(semantic.get(&partition, &question(text), &policy, at(0)));
    assert_eq!(get("fail").unwrap(), None);
    assert_eq!(embedder.1.load(Ordering::Relaxed), 0);
    ready(semantic.put(&partition, &question("red"), stored(1), at(0))).unwrap();
    assert_eq!(get("red").unwrap().unwrap().score_milli, 1_000);
    assert_eq!(get("fail").unwrap_err().kind(), ErrorKind::Transport);
    assert!(ready(semantic.put(&partition, &question("fail"), stored(2), at(0))).is_err());
    assert_eq!(semantic.counts(), (1, 1));
}

#[test]
fn lookups_may_move_between_threads() {
    fn sendable<T: Send>(value: T) -> T {
        value
    }
    let (semantic, names) = (Semantic::new(SemanticConfig::default()), Names::of("t"));
    let (partition, asked, policy) = (names.partition(), question("red"), SemanticPolicy::default());
    ready(sendable(semantic.0.put(&partition, &asked, stored(1), at(0)))).unwrap();
    assert!(ready(sendable(semantic.0.get(&partition, &asked, &policy, at(0)))).unwrap().is_some());
}

#[test]
fn a_vector_that_is_not_finite_misses() {
    let embedder = Arc::new(Fixed(vec![f32::NAN, 1.0], AtomicUsize::new(0)));
    let semantic = SemanticCache::new(SemanticConfig::default(), embedder);
    ready(semantic.put(&Names::of("t").partition(), &question("red"), stored(1), at(0))).unwrap();
    assert_eq!(semantic.counts().1, 0);
}
