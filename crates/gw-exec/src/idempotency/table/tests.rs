//! What the table remembers, for how long, and what it forgets first.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use gw_types::{KeyNote, KeyState, Loss, MonoTime, RequestId, SealHash, TenantId, UtcTime};

use super::{ANSWER_BYTES_MAX, Found, KEPT, KeptAnswer, KeyTable, TENANT_BYTES_MAX, TENANT_KEYS_MAX};
use crate::idempotency::{KeptBody, KeptContent};

fn note(key: u32, body: u8) -> KeyNote {
    KeyNote {
        tenant: TenantId::new("a").unwrap(),
        key: SealHash::of_record(&key.to_be_bytes()),
        fingerprint: SealHash::of_record(&[body]),
        request: RequestId::from_bits(key.into()),
        state: KeyState::Dispatched,
        since: UtcTime::from_micros(0),
    }
}

fn answer(bytes: usize) -> Option<Arc<KeptAnswer>> {
    Some(Arc::new(KeptAnswer {
        content: KeptContent::Whole(KeptBody(Bytes::from(vec![b'x'; bytes]))),
        serving: None,
        model_version: None,
        served_model: None,
        loss: Loss::default(),
    }))
}

#[track_caller]
fn check(table: &KeyTable, note: &KeyNote, expected: &str) {
    let found = match table.claim(note, MonoTime::ZERO) {
        Ok(_) => "new",
        Err(Found::OtherBody) => "other body",
        Err(Found::InFlight) => "in flight",
        Err(Found::Ambiguous { .. }) => "ambiguous",
        Err(Found::Answered { answer: Some(_), .. }) => "answered",
        Err(Found::Answered { answer: None, .. }) => "not kept",
        Err(Found::Full { .. }) => "full",
    };
    assert_eq!(found, expected);
}

#[test]
fn a_key_goes_from_in_flight_to_one_of_three_ends() {
    let table = KeyTable::default();
    for (key, expected) in [(1, "answered"), (2, "ambiguous"), (3, "new")] {
        let place = table.claim(&note(key, 0), MonoTime::ZERO).unwrap();
        check(&table, &note(key, 0), "in flight");
        check(&table, &note(key, 1), "other body");
        match key {
            1 => place.answered(answer(10), &table),
            2 => place.ambiguous(&table),
            _ => place.release(&table),
        }
        check(&table, &note(key, 0), expected);
    }
    check(&table, &note(1, 1), "other body");
}

#[test]
fn a_key_is_known_for_a_day() {
    let table = KeyTable::default();
    let place = table.claim(&note(1, 0), MonoTime::ZERO).unwrap();
    place.answered(answer(10), &table);
    let last = MonoTime::ZERO.saturating_add(KEPT - Duration::from_nanos(1));
    assert!(matches!(table.claim(&note(1, 0), last), Err(Found::Answered { answer: Some(_), .. })));
    let after = MonoTime::ZERO.saturating_add(KEPT);
    let next = table.claim(&note(1, 1), after).unwrap();
    // The first request has lost its place and says nothing about the next one's.
    place.release(&table);
    assert!(matches!(table.claim(&note(1, 1), after), Err(Found::InFlight)));
    next.release(&table);
    assert_eq!(table.0.lock().bytes, 0);
}

#[test]
fn of_what_was_before_a_restart_only_the_fact_is_left() {
    let table = KeyTable::default();
    for (key, state) in [(1, KeyState::Dispatched), (2, KeyState::Answered), (3, KeyState::Released)] {
        table.restore(&KeyNote { state, ..note(key, 0) }, MonoTime::from_nanos(1));
    }
    check(&table, &note(1, 0), "ambiguous");
    check(&table, &note(2, 0), "not kept");
    check(&table, &note(3, 0), "new");
}

#[test]
fn answers_are_forgotten_before_keys_and_the_oldest_first() {
    let table = KeyTable::default();
    let big = ANSWER_BYTES_MAX - 1_000;
    let fits = u32::try_from(TENANT_BYTES_MAX / (big + 256)).unwrap();
    for key in 0..=fits {
        table.claim(&note(key, 0), MonoTime::from_nanos(key.into())).unwrap().answered(answer(big), &table);
    }
    check(&table, &note(0, 0), "not kept");
    check(&table, &note(1, 0), "answered");
    check(&table, &note(fits, 0), "answered");
    assert!(table.0.lock().bytes <= TENANT_BYTES_MAX);
    let long = table.claim(&note(fits + 1, 0), MonoTime::ZERO).unwrap();
    long.answered(answer(ANSWER_BYTES_MAX), &table);
    check(&table, &note(fits + 1, 0), "not kept");
}

#[test]
fn a_tenant_with_too_many_keys_is_told_until_when() {
    let table = KeyTable::default();
    let many = u32::try_from(TENANT_KEYS_MAX).unwrap();
    (0..many).for_each(|key| drop(table.claim(&note(key, 0), MonoTime::from_nanos(7)).unwrap()));
    let Err(Found::Full { until }) = table.claim(&note(many, 0), MonoTime::from_nanos(8)) else {
        panic!("it is full");
    };
    assert_eq!(until, KEPT - Duration::from_nanos(1));
    let other = KeyNote { tenant: TenantId::new("b").unwrap(), ..note(many, 0) };
    check(&table, &other, "new");
}
