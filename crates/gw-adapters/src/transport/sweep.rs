//! The one task of a pool: closes what the provider has closed or nobody has used, and reads the ends of bodies.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    sync::{Arc, OnceLock, Weak},
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    task::JoinHandle,
    time::{Instant, sleep},
};

use super::pool::{Draining, IDLE_MAX, Pool};

/// The longest between two sweeps.
const INTERVAL: Duration = Duration::from_secs(1);

/// Starts the pool's task once. It holds the pool weakly and ends with it.
pub(super) fn start(pool: &Arc<Pool>, handle: &OnceLock<JoinHandle<()>>) {
    handle.get_or_init(|| {
        let pool = Arc::downgrade(pool);
        tokio::spawn(async move { while sweep_until_woken(&pool).await {} })
    });
}

/// Sweeps whenever a connection stirs; returns after the interval whether the pool still stands.
async fn sweep_until_woken(pool: &Weak<Pool>) -> bool {
    let mut interval = pin!(sleep(INTERVAL));
    poll_fn(|cx| {
        let Some(pool) = pool.upgrade() else { return Poll::Ready(false) };
        pool.watcher.get_or_init(|| cx.waker().clone());
        sweep(&pool, cx);
        interval.as_mut().poll(cx).map(|()| true)
    })
    .await
}

fn sweep(pool: &Arc<Pool>, cx: &mut Context<'_>) {
    let now = Instant::now();
    let is_young = |since: Option<Instant>| since.is_none_or(|since| now.duration_since(since) < IDLE_MAX);
    let mut state = pool.state.lock();
    let (idle, old): (Vec<_>, Vec<_>) = std::mem::take(&mut state.idle)
        .into_iter()
        .map(|mut connection| {
            let stays = connection.is_usable(cx) && is_young(connection.idle_since);
            (connection, stays)
        })
        .partition(|(_, stays)| *stays);
    state.idle = idle.into_iter().map(|(connection, _)| connection).collect();
    for listed in &mut state.shared {
        listed.unused_since =
            if listed.connection.is_unused() { listed.unused_since.or(Some(now)) } else { None };
    }
    state.shared.retain(|listed| !listed.connection.is_closed() && is_young(listed.unused_since));
    let draining = std::mem::take(&mut state.draining);
    drop(state);
    // Sockets are closed, and slots given back, without the lock.
    drop(old);
    let pending: Vec<_> =
        draining.into_iter().filter_map(|draining| drain(pool, draining, now, cx)).collect();
    if !pending.is_empty() {
        pool.state.lock().draining.extend(pending);
    }
}

/// Reads what has come of a body's end; returns it if there is more to wait for.
fn drain(pool: &Pool, mut draining: Draining, now: Instant, cx: &mut Context<'_>) -> Option<Draining> {
    loop {
        match draining.connection.poll_piece(&mut draining.body, cx) {
            Poll::Pending if now < draining.until => return Some(draining),
            Poll::Ready(Some(Ok(_))) if now < draining.until => {}
            Poll::Ready(None) => {
                let Draining { connection, slot, .. } = draining;
                pool.keep(connection);
                drop(slot);
                return None;
            }
            Poll::Pending | Poll::Ready(Some(_)) => return None,
        }
    }
}
