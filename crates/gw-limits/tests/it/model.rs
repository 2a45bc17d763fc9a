//! Simple models: one number where the crate has positions, lists where it has guards, sums from scratch.

/// A bucket of so many tokens a minute as a level that grows with each minted token, from the clock's zero on.
#[derive(Clone, Debug)]
pub(crate) struct Level {
    capacity: i128,
    level: i128,
    minted: i128,
}

impl Level {
    pub(crate) fn full(per_minute: u64) -> Self {
        Self { capacity: i128::from(per_minute), level: i128::from(per_minute), minted: 0 }
    }

    pub(crate) fn advance_to(&mut self, nanos: u64) {
        let minted = i128::from(nanos) * self.capacity / 60_000_000_000;
        self.level = self.capacity.min(self.level + (minted - self.minted).max(0));
        self.minted = self.minted.max(minted);
    }

    pub(crate) fn has(&self, n: u64) -> bool {
        self.level >= i128::from(n)
    }

    pub(crate) fn has_at(&self, n: u64, nanos: u64) -> bool {
        let mut then = self.clone();
        then.advance_to(nanos);
        then.has(n)
    }

    pub(crate) fn can_hold(&self, n: u64) -> bool {
        self.capacity >= i128::from(n)
    }

    /// Takes a positive amount or gives back a negative one; may go into debt.
    pub(crate) fn take(&mut self, n: i128) {
        self.level = self.capacity.min(self.level - n);
    }

    pub(crate) fn remaining(&self) -> u64 {
        u64::try_from(self.level.max(0)).unwrap()
    }
}

/// One money window of an hour.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct HourModel {
    /// Hours since 1970.
    pub(crate) hour: i64,
    pub(crate) spent: u64,
    pub(crate) reserved: u64,
    pub(crate) overrun: u64,
}

/// A budget an hour: the hours that were ever current, of which the last three count.
#[derive(Clone, Debug)]
pub(crate) struct BudgetModel {
    pub(crate) limit: u64,
    pub(crate) hours: Vec<HourModel>,
}

impl BudgetModel {
    const KEPT: usize = 3;

    pub(crate) fn new(limit: u64) -> Self {
        Self { limit, hours: Vec::new() }
    }

    pub(crate) fn kept(&self) -> &[HourModel] {
        &self.hours[self.hours.len().saturating_sub(Self::KEPT)..]
    }

    /// The hour that an instant belongs to: a step back ends at an hour that is kept.
    pub(crate) fn hour_of(&self, now: i64) -> i64 {
        self.kept().iter().map(|kept| kept.hour).find(|hour| *hour >= now).unwrap_or(now)
    }

    pub(crate) fn open(&mut self, now: i64) -> &mut HourModel {
        let hour = self.hour_of(now);
        if !self.hours.iter().any(|known| known.hour == hour) {
            self.hours.push(HourModel { hour, ..HourModel::default() });
        }
        self.kept_mut(hour).unwrap()
    }

    pub(crate) fn kept_mut(&mut self, hour: i64) -> Option<&mut HourModel> {
        let dropped = self.hours.len().saturating_sub(Self::KEPT);
        self.hours[dropped..].iter_mut().find(|kept| kept.hour == hour)
    }

    pub(crate) fn reserve(&mut self, amount: u64, now: i64) -> Option<i64> {
        let limit = self.limit;
        let hour = self.open(now);
        let fits = hour.spent < limit && hour.spent + hour.reserved + amount <= limit;
        if fits {
            hour.reserved += amount;
        }
        fits.then_some(hour.hour)
    }

    pub(crate) fn raise(&mut self, made_in: i64, from: u64, to: u64) -> bool {
        let limit = self.limit;
        let Some(hour) = self.kept_mut(made_in) else { return to <= from };
        let fits = to <= from || hour.spent + hour.reserved + (to - from) <= limit;
        if fits {
            hour.reserved += to.saturating_sub(from);
        }
        fits
    }

    pub(crate) fn settle(&mut self, made_in: i64, reserved: u64, spent: u64) {
        if let Some(hour) = self.kept_mut(made_in) {
            hour.reserved -= reserved;
            hour.spent += spent;
            hour.overrun += spent.saturating_sub(reserved);
        }
    }
}

/// Tenants that share a pool; the shared slots in use are counted from scratch each time.
#[derive(Clone, Debug)]
pub(crate) struct PoolModel {
    pub(crate) tenants: Vec<TenantModel>,
    pub(crate) shared: u32,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct TenantModel {
    pub(crate) reserved: u32,
    pub(crate) max: Option<u32>,
    pub(crate) in_use: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SlotVerdict {
    Taken,
    Cap,
    Full,
}

impl PoolModel {
    pub(crate) fn take(&mut self, at: usize) -> SlotVerdict {
        let shared_in_use: u32 =
            self.tenants.iter().map(|tenant| tenant.in_use.saturating_sub(tenant.reserved)).sum();
        let tenant = &mut self.tenants[at];
        if tenant.max.is_some_and(|max| tenant.in_use >= max) {
            return SlotVerdict::Cap;
        }
        if tenant.in_use >= tenant.reserved && shared_in_use >= self.shared {
            return SlotVerdict::Full;
        }
        tenant.in_use += 1;
        SlotVerdict::Taken
    }

    pub(crate) fn capacity(&self) -> u32 {
        self.shared + self.tenants.iter().map(|tenant| tenant.reserved).sum::<u32>()
    }

    pub(crate) fn in_use(&self) -> u32 {
        self.tenants.iter().map(|tenant| tenant.in_use).sum()
    }
}
