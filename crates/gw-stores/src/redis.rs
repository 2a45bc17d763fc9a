//! Limits that replicas share, in Redis or Valkey: one script a question, by the server's own time.

use std::time::Duration;

use async_trait::async_trait;
use gw_limits::{
    SharedLimit, SharedLimits, SharedLost, SharedSettlement, SharedTake, SharedUse, SharedVerdict,
};
use gw_types::{Money, Secret, TokenCount};
use redis::{
    Client, RedisError, Script,
    aio::{ConnectionManager, ConnectionManagerConfig},
};

/// How long making a connection may take; a question has its own, shorter time.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a question may stay open when nobody waits for its answer any more.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(5);

/// Says that an address is none of a Redis server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "not the address of a Redis server, as in `redis://HOST:PORT` or `redis://USER:PASSWORD@HOST:PORT/DATABASE`"
)]
pub struct NotRedis;

/// Shared limits in one Redis server.
///
/// Rates are buckets in the form of [`gw_limits::Bucket`], exact to 2^53; money is added in whole pico-USD. Each question
/// is one script that decides every limit before it takes of any, so a refusal takes nothing. What a request holds stands
/// under its id; settled twice it changes nothing, and never settled it stays charged. Keys end by themselves: a rate's
/// a minute after it is full, a window's a day after its end.
///
/// The keys of one question lie in different slots, so a Redis Cluster is not served. What the server forgets when it
/// restarts without having saved is free again: let it append its log to disk.
pub struct RedisLimits {
    connection: ConnectionManager,
    take: Script,
    settle: Script,
}

impl std::fmt::Debug for RedisLimits {
    /// Without the address, which may hold a password.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RedisLimits").finish_non_exhaustive()
    }
}

impl RedisLimits {
    /// Checks an address, without a runtime and without a connection.
    ///
    /// # Errors
    /// [`NotRedis`] if it cannot be read.
    pub fn check(address: &Secret) -> Result<(), NotRedis> {
        Client::open(address.expose()).map(|_| ()).map_err(|_| NotRedis)
    }

    /// Returns the limits of the server at an address. Nothing is connected before the first question; a lost
    /// connection is made again in the background. Call it inside a Tokio runtime.
    ///
    /// # Errors
    /// [`NotRedis`] if the address cannot be read. It is not repeated, as it may hold a password.
    pub fn new(address: &Secret) -> Result<Self, NotRedis> {
        let client = Client::open(address.expose()).map_err(|_| NotRedis)?;
        let config = ConnectionManagerConfig::new()
            .set_connection_timeout(Some(CONNECT_TIMEOUT))
            .set_response_timeout(Some(RESPONSE_TIMEOUT))
            .set_min_delay(Duration::from_millis(50))
            .set_max_delay(Duration::from_secs(1));
        let connection = ConnectionManager::new_lazy_with_config(client, config).map_err(|_| NotRedis)?;
        let take = Script::new(include_str!("redis/take.lua"));
        let settle = Script::new(include_str!("redis/settle.lua"));
        Ok(Self { connection, take, settle })
    }
}

#[async_trait]
impl SharedLimits for RedisLimits {
    async fn take(
        &self,
        id: u128,
        limits: &[SharedLimit],
        hold: Duration,
    ) -> Result<SharedVerdict, SharedLost> {
        let mut call = self.take.prepare_invoke();
        call.key(hold_key(id)).arg(u64::try_from(hold.as_millis()).unwrap_or(u64::MAX).clamp(1, HOLD_MS_MAX));
        for limit in limits {
            let Asked { kind, most, amount, end_ms } = Asked::of(limit);
            call.key(key(limit)).arg(kind).arg(most.to_string()).arg(amount.to_string()).arg(end_ms);
        }
        let refused: Vec<i64> =
            call.invoke_async(&mut self.connection.clone()).await.map_err(|error| lost(&error))?;
        if refused.is_empty() {
            return Ok(SharedVerdict::Taken);
        }
        let of = |pair: &[i64]| {
            let [at, wait] = *pair else { return None };
            let at = usize::try_from(at).ok()?;
            let Asked { most, amount, .. } = Asked::of(limits.get(at)?);
            let wait = u64::try_from(wait).ok().filter(|_| amount <= most);
            Some((at, wait.map(Duration::from_micros)))
        };
        Ok(SharedVerdict::Refused(refused.chunks(2).filter_map(of).collect()))
    }

    async fn settle(&self, settlement: &SharedSettlement) -> Result<(), SharedLost> {
        let mut call = self.settle.prepare_invoke();
        call.key(hold_key(settlement.id));
        for limit in &settlement.limits {
            let Asked { kind, amount, .. } = Asked::of(limit);
            let more = used(limit, settlement.used) - amount;
            call.key(key(limit)).arg(kind).arg(amount.to_string()).arg(more.to_string());
        }
        call.invoke_async(&mut self.connection.clone()).await.map_err(|error| lost(&error))
    }
}

/// A year: longer than any deadline.
const HOLD_MS_MAX: u64 = 366 * 86_400_000;

/// What a script is told of a limit.
struct Asked {
    kind: &'static str,
    most: i128,
    amount: i128,
    end_ms: i64,
}

impl Asked {
    fn of(limit: &SharedLimit) -> Self {
        let rate = |most: u64, amount: u64| Self {
            kind: "rate",
            most: i128::from(most),
            amount: i128::from(amount),
            end_ms: 0,
        };
        match limit.take {
            SharedTake::Requests { per_minute } => rate(per_minute, 1),
            SharedTake::Tokens { per_minute, amount } => rate(per_minute, amount),
            SharedTake::Budget { limit, amount, end, .. } => Self {
                kind: "money",
                most: whole(limit),
                // What is beyond every limit is refused as well, and fits into the store's numbers.
                amount: whole(amount.min(BEYOND)),
                end_ms: end.micros() / 1_000,
            },
        }
    }
}

/// More than any shared budget; twice as much is less than 2^63 pico-USD.
const BEYOND: Money = SharedLimit::BUDGET_MAX.saturating_add(Money::from_micros(1));

fn used(limit: &SharedLimit, used: SharedUse) -> i128 {
    match (used, limit.take) {
        (SharedUse::Nothing, _) => 0,
        (SharedUse::Used(..), SharedTake::Requests { .. }) => 1,
        (SharedUse::Used(tokens, _), SharedTake::Tokens { .. }) => tokens_of(tokens),
        (SharedUse::Used(_, money), SharedTake::Budget { .. }) => whole(money.min(BEYOND)),
    }
}

fn tokens_of(tokens: TokenCount) -> i128 {
    i128::from(tokens.get().min(SharedLimit::RATE_MAX * 60))
}

fn whole(money: Money) -> i128 {
    i128::try_from(money.pico()).unwrap_or(i128::MAX)
}

fn hold_key(id: u128) -> String {
    format!("gw:hold:{id:032x}")
}

fn key(limit: &SharedLimit) -> String {
    match limit.take {
        SharedTake::Requests { .. } | SharedTake::Tokens { .. } => format!("gw:{}", limit.named()),
        SharedTake::Budget { start, end, .. } => {
            format!("gw:{}:{}-{}", limit.named(), start.seconds(), end.seconds())
        }
    }
}

/// The cause is told by its kind: a server's own words may repeat what it was asked.
fn lost(error: &RedisError) -> SharedLost {
    tracing::warn!(kind = ?error.kind(), code = ?error.code(), "the store of shared limits did not answer");
    SharedLost
}
