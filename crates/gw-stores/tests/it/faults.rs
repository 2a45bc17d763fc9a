//! A PostgreSQL server that is restarted, cut off or silent in the middle of load: nothing is lost, nothing is stored
//! twice, and nobody new is let in meanwhile.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
};

use gw_stores::{Expected, LedgerFile, LedgerStore, Period, SqlConfig, SqlLedger};
use gw_testkit::{PostgresServer, sample_record};
use gw_types::{Ledger, Receipt};

/// Records that are acknowledged before a fault, and again before the next.
const STEADY: u32 = 20;

/// A gateway's worth of load on a ledger.
struct Load {
    ledger: Arc<SqlLedger>,
    next: AtomicU32,
    acknowledged: AtomicU32,
    is_over: AtomicBool,
}

impl Load {
    /// Appends, one after the other, until it is over.
    fn run(&self) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        while !self.is_over.load(Ordering::SeqCst) {
            if !self.ledger.take_place() {
                std::thread::yield_now();
                continue;
            }
            let number = self.next.fetch_add(1, Ordering::SeqCst);
            if let Receipt::Pending(stored) = self.ledger.append(Box::new(sample_record(number))) {
                runtime.block_on(stored).unwrap();
            }
            self.acknowledged.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn wait_for_more(&self) {
        let from = self.acknowledged.load(Ordering::SeqCst);
        while self.acknowledged.load(Ordering::SeqCst) < from + STEADY {
            std::thread::yield_now();
        }
    }

    /// Waits until nobody new is let in.
    fn wait_for_refusals(&self) {
        while self.ledger.take_place() {
            self.ledger.give_place_back();
            std::thread::yield_now();
        }
    }
}

/// Loads a ledger while a fault is made, and looks at what it holds afterwards.
fn check(fault: impl FnOnce(&mut PostgresServer, &Load)) -> Vec<i64> {
    let mut server = PostgresServer::start().unwrap();
    let store = LedgerStore::Postgres { url: server.database().unwrap().parse().unwrap(), tls: None };
    let load = Load {
        ledger: SqlLedger::open(&store, SqlConfig::default()).unwrap(),
        next: AtomicU32::new(1),
        acknowledged: AtomicU32::new(0),
        is_over: AtomicBool::new(false),
    };
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| load.run());
        }
        load.wait_for_more();
        fault(&mut server, &load);
        load.wait_for_more();
        load.is_over.store(true, Ordering::SeqCst);
    });
    let Load { ledger, next, .. } = load;
    drop(ledger);
    let file = LedgerFile::open(&store).unwrap();
    let nodes = file.nodes().unwrap();
    for node in &nodes {
        assert_eq!(file.verify_node(*node, &Expected::default()).unwrap().fault, None);
    }
    let mut stored = Vec::new();
    file.each_record(Period::default(), |found| {
        stored.push(found.record.id.clone());
        true
    })
    .unwrap();
    let unique: BTreeSet<_> = stored.iter().collect();
    assert_eq!(unique.len(), stored.len(), "none is stored twice");
    for number in 1..next.load(Ordering::SeqCst) {
        assert!(unique.contains(&sample_record(number).id), "record {number} is lost");
    }
    nodes
}

#[test]
fn a_server_that_is_restarted_under_load_costs_no_record() {
    let nodes = check(|server, load| {
        for mode in ["fast", "immediate"] {
            server.stop(mode).unwrap();
            load.wait_for_refusals();
            server.run().unwrap();
            load.wait_for_more();
        }
    });
    assert_eq!(nodes, [1]);
}

#[test]
fn connections_that_are_cut_under_load_cost_no_record() {
    let nodes = check(|server, load| {
        for _ in 0..5 {
            let cut =
                "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'gw'";
            server.sql("gw0", cut).unwrap();
            load.wait_for_more();
        }
    });
    assert_eq!(nodes, [1]);
}

#[test]
fn a_chain_that_another_gateway_took_meanwhile_is_left_to_it() {
    let nodes = check(|server, load| {
        // The lock goes with the connection; whoever comes back first has it, so it is cut off until somebody else does.
        let taken = "DO $$ BEGIN LOOP
                PERFORM pg_stat_clear_snapshot();
                PERFORM pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'gw';
                EXIT WHEN pg_try_advisory_lock(26487, 1);
            END LOOP; END $$";
        let other = server.hold("gw0", taken).unwrap();
        load.wait_for_more();
        drop(other);
    });
    assert_eq!(nodes, [1, 2]);
}
