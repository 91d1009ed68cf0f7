//! The clocks of this machine, read here and nowhere else in the agent.

use nix::time::{ClockId, clock_gettime};
use proto::time::{Tick, Wall};
use std::sync::OnceLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Milliseconds of `CLOCK_BOOTTIME`, which the shepherds use too.
pub fn boot_ms() -> u64 {
    let time = clock_gettime(ClockId::CLOCK_BOOTTIME).expect("CLOCK_BOOTTIME exists since Linux 2.6.39");
    let part = |value: i64| u64::try_from(value).unwrap_or(0);
    part(time.tv_sec()) * 1000 + part(time.tv_nsec()) / 1_000_000
}

/// The same as the tick that the sensors' machines count in.
pub fn tick() -> Tick {
    Tick(boot_ms())
}

/// How long it is until `then`; nothing if that has passed.
pub fn until(then: Tick) -> Duration {
    Duration::from_millis(then.since_ms(tick()))
}

/// This boot of the machine; empty where the kernel does not say. A process lives in one.
pub fn boot_id() -> String {
    static BOOT_ID: OnceLock<String> = OnceLock::new();
    BOOT_ID
        .get_or_init(|| procfs::sys::kernel::random::boot_id().unwrap_or_default())
        .clone()
}

/// What the wall clock shows.
pub fn wall() -> Wall {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Wall(i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX))
}

/// Names the one agent that a directory can have in this boot, for the host `host`: its lock keeps
/// a second one away.
///
/// An agent that was killed and started again has the same name, so that the master takes its
/// connection in the place of the dead one at once; a copy of the certificates on another machine
/// has another.
pub fn instance(dir: &str, host: &str) -> u128 {
    let words = [boot_id(), dir.to_owned(), host.to_owned()];
    fnv1a(words.join("\n").as_bytes())
}

/// The 128-bit FNV-1a hash: stable over releases, which the hashers of std are not.
fn fnv1a(bytes: &[u8]) -> u128 {
    const OFFSET_BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    bytes.iter().fold(OFFSET_BASIS, |hash, byte| {
        (hash ^ u128::from(*byte)).wrapping_mul(PRIME)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_is_the_same_after_a_restart_and_another_in_another_directory() {
        assert_eq!(instance("/a", "node1"), instance("/a", "node1"));
        assert_ne!(instance("/a", "node1"), instance("/b", "node1"));
        assert_ne!(instance("/a", "sim0001"), instance("/a", "sim0002"));
        // The published test vector of the empty string and of "a".
        assert_eq!(fnv1a(b""), 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d);
        assert_eq!(fnv1a(b"a"), 0xd228_cb69_6f1a_8caf_7891_2b70_4e4a_8964);
    }
}
