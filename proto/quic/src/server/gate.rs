//! What those who are not authenticated may cost: enrolments by number and rate, and lines in the
//! log.

use super::ServerLimits;
use proto::log::Limiter;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Addresses that are remembered. When all are busy, an unknown one is refused.
const ADDRESSES_MAX: usize = 1_024;

/// Refusals that are logged per second; the rest is counted.
const LINES_PER_S: u32 = 10;

/// The limit that keeps a host from enrolling now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum JoinLimit {
    /// [`ServerLimits::joins`].
    #[error("too many hosts are joining at once")]
    AtOnce,
    /// [`ServerLimits::joins_per_address`].
    #[error("too many hosts are joining from this address at once")]
    AtOnceFromAddress,
    /// [`ServerLimits::joins_per_s`].
    #[error("too many attempts to join from this address")]
    Rate,
    /// [`ADDRESSES_MAX`].
    #[error("too many addresses try to join")]
    Addresses,
}

/// Counts enrolments by address.
pub(super) struct JoinGate {
    limits: ServerLimits,
    state: Mutex<GateState>,
}

#[derive(Default)]
struct GateState {
    open: usize,
    addresses: BTreeMap<IpAddr, Visitor>,
}

/// One address: what it has open, and what it may still begin.
struct Visitor {
    open: usize,
    credit: u32,
    since: Instant,
}

/// The place of one enrolment, which is free again when this is dropped.
pub(super) struct JoinSlot {
    gate: Arc<JoinGate>,
    address: IpAddr,
}

impl JoinGate {
    pub(super) fn new(limits: ServerLimits) -> Self {
        Self {
            limits,
            state: Mutex::default(),
        }
    }

    /// A place for an enrolment from `address`, or the limit that is in the way.
    pub(super) fn enter(gate: &Arc<Self>, address: IpAddr, now: Instant) -> Result<JoinSlot, JoinLimit> {
        let address = neighbourhood(address);
        let mut state = gate.lock();
        state.take(address, now, &gate.limits)?;
        Ok(JoinSlot {
            gate: gate.clone(),
            address,
        })
    }

    fn lock(&self) -> MutexGuard<'_, GateState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl GateState {
    fn take(&mut self, address: IpAddr, now: Instant, limits: &ServerLimits) -> Result<(), JoinLimit> {
        if self.open >= limits.joins {
            return Err(JoinLimit::AtOnce);
        }
        self.make_room(address, now, limits)?;
        let visitor = self.addresses.entry(address).or_insert(Visitor {
            open: 0,
            credit: limits.join_burst,
            since: now,
        });
        visitor.refill(now, limits);
        if visitor.open >= limits.joins_per_address {
            return Err(JoinLimit::AtOnceFromAddress);
        }
        visitor.credit = visitor.credit.checked_sub(1).ok_or(JoinLimit::Rate)?;
        visitor.open += 1;
        self.open += 1;
        Ok(())
    }

    fn make_room(&mut self, address: IpAddr, now: Instant, limits: &ServerLimits) -> Result<(), JoinLimit> {
        if self.addresses.len() < ADDRESSES_MAX || self.addresses.contains_key(&address) {
            return Ok(());
        }
        self.addresses.retain(|_, visitor| {
            visitor.refill(now, limits);
            visitor.open > 0 || visitor.credit < limits.join_burst
        });
        if self.addresses.len() < ADDRESSES_MAX {
            Ok(())
        } else {
            Err(JoinLimit::Addresses)
        }
    }
}

impl Visitor {
    fn refill(&mut self, now: Instant, limits: &ServerLimits) {
        let seconds = u32::try_from(now.saturating_duration_since(self.since).as_secs()).unwrap_or(u32::MAX);
        self.since += Duration::from_secs(u64::from(seconds));
        self.credit = self
            .credit
            .saturating_add(seconds.saturating_mul(limits.joins_per_s))
            .min(limits.join_burst);
    }
}

impl Drop for JoinSlot {
    fn drop(&mut self) {
        let mut state = self.gate.lock();
        state.open -= 1;
        if let Some(visitor) = state.addresses.get_mut(&self.address) {
            visitor.open -= 1;
        }
    }
}

/// One owner usually has a whole /64 of IPv6 addresses, so that is what counts as one.
fn neighbourhood(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
    }
}

/// Writes one line for each refused peer, and one number for those that came too fast.
pub(super) struct RefusalLog {
    since: Instant,
    limiter: Mutex<Limiter>,
}

impl Default for RefusalLog {
    fn default() -> Self {
        Self {
            since: Instant::now(),
            limiter: Mutex::new(Limiter::new(LINES_PER_S, LINES_PER_S)),
        }
    }
}

impl RefusalLog {
    pub(super) fn log(&self, address: SocketAddr, why: &str) {
        let now_ms = u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX);
        let admitted = self
            .limiter
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .admit(now_ms);
        if let Some(suppressed) = admitted {
            tracing::warn!(peer = %address, suppressed, "connection refused: {why}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gate() -> Arc<JoinGate> {
        let limits = ServerLimits {
            joins: 5,
            joins_per_address: 2,
            join_burst: 3,
            joins_per_s: 1,
            ..Default::default()
        };
        Arc::new(JoinGate::new(limits))
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn one_address_has_few_enrolments_at_once_and_a_rate() {
        let (gate, now) = (gate(), Instant::now());
        let enter = |now| JoinGate::enter(&gate, ip("10.0.0.1"), now);
        let (first, second) = (enter(now).unwrap(), enter(now).unwrap());
        assert!(enter(now).is_err());
        drop(first);
        let third = enter(now).unwrap();
        drop((second, third));
        assert_eq!(enter(now).err(), Some(JoinLimit::Rate));
        assert!(enter(now + Duration::from_secs(1)).is_ok());
        assert!(enter(now + Duration::from_secs(1)).is_err());
    }

    #[test]
    fn all_addresses_together_have_a_limit_and_an_ipv6_network_counts_as_one() {
        let (gate, now) = (gate(), Instant::now());
        let enter = |text| JoinGate::enter(&gate, ip(text), now);
        let held: Vec<_> = ["10.0.0.1", "10.0.0.2", "::ffff:10.0.0.1", "fd00::1", "fd00::2"]
            .map(enter)
            .into();
        assert!(held.iter().all(Result::is_ok));
        assert!(enter("10.0.0.3").is_err());
        drop(held);
        assert!(enter("10.0.0.3").is_ok());
        let mut networks: Vec<_> = ["fd00::3", "fd00::4", "fd00:1::1"].map(enter).into();
        assert_eq!(
            networks.drain(..).map(|slot| slot.is_ok()).collect::<Vec<_>>(),
            [true, false, true]
        );
    }

    #[test]
    fn addresses_that_left_are_forgotten_when_there_are_too_many() {
        let (gate, now) = (gate(), Instant::now());
        let visit = |n: usize, now| JoinGate::enter(&gate, IpAddr::V4(std::net::Ipv4Addr::from_bits(n as u32)), now);
        assert!((0..ADDRESSES_MAX).all(|n| visit(n, now).is_ok()));
        assert!(visit(ADDRESSES_MAX, now).is_err());
        assert!(visit(ADDRESSES_MAX, now + Duration::from_secs(1)).is_ok());
        assert_eq!(gate.lock().addresses.len(), 1);
    }
}
