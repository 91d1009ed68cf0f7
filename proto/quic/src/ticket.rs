//! The keys that session tickets are sealed with. They persist and rotate, so that a restarted
//! master resumes the sessions of its agents and a ticket dies after at most two periods.

use crate::error::{IdentityError, KeyFaultKind};
use data_encoding::BASE64;
use proto::time::Wall;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::{SecureRandom, SystemRandom};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// Seconds after which [`TicketKeys::rotate_if_due`] makes a new key (12 hours).
pub const ROTATE_AFTER_S: i64 = 12 * 3_600;

const KEY_BYTES: usize = 32;

/// The version in front of exported keys.
const EXPORT_VERSION: &str = "1";

type KeyBytes = [u8; KEY_BYTES];

/// The current and the previous key for session tickets, shared by all who hold a clone.
#[derive(Clone)]
pub struct TicketKeys(Arc<TicketState>);

struct TicketState {
    ring: RwLock<KeyRing>,
    resumed: AtomicU64,
}

#[derive(Clone)]
struct KeyRing {
    since: Wall,
    current: KeyBytes,
    previous: KeyBytes,
}

impl TicketKeys {
    /// New random keys.
    ///
    /// # Errors
    /// `NoRandomness` if the system gives no random numbers.
    pub fn generate(now: Wall) -> Result<Self, IdentityError> {
        Ok(Self::from_ring(KeyRing {
            since: now,
            current: random()?,
            previous: random()?,
        }))
    }

    /// Reads keys back that [`TicketKeys::export`] wrote.
    ///
    /// # Errors
    /// `BadKey` if the text is something else; new keys only cost every agent one full handshake.
    pub fn import(text: &str) -> Result<Self, IdentityError> {
        read(text)
            .map(Self::from_ring)
            .ok_or_else(|| IdentityError::bad_key(KeyFaultKind::NotTicketKeys))
    }

    /// The keys as one line of text, for a file that only the master reads.
    pub fn export(&self) -> String {
        let KeyRing {
            since,
            current,
            previous,
        } = self.ring();
        format!(
            "{EXPORT_VERSION} {} {} {}",
            since.0,
            BASE64.encode(&current),
            BASE64.encode(&previous)
        )
    }

    /// Makes a new key if the current one is older than [`ROTATE_AFTER_S`] or from the future; true
    /// if the keys should be stored again. Tickets of the key before the previous one end.
    ///
    /// # Errors
    /// `NoRandomness` if the system gives no random numbers.
    pub fn rotate_if_due(&self, now: Wall) -> Result<bool, IdentityError> {
        let KeyRing {
            since,
            current,
            previous: _,
        } = self.ring();
        let age_s = now.seconds().saturating_sub(since.seconds());
        if (0..ROTATE_AFTER_S).contains(&age_s) {
            return Ok(false);
        }
        let next = KeyRing {
            since: now,
            current: random()?,
            previous: current,
        };
        *self.0.ring.write().unwrap_or_else(PoisonError::into_inner) = next;
        Ok(true)
    }

    /// How many tickets under these keys came back in this process: the reconnects that cost no
    /// full handshake.
    pub fn resumed_count(&self) -> u64 {
        self.0.resumed.load(Ordering::Relaxed)
    }

    fn from_ring(ring: KeyRing) -> Self {
        Self(Arc::new(TicketState {
            ring: RwLock::new(ring),
            resumed: AtomicU64::new(0),
        }))
    }

    fn ring(&self) -> KeyRing {
        self.0.ring.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl rustls::server::ProducesTickets for TicketKeys {
    fn enabled(&self) -> bool {
        true
    }

    fn lifetime(&self) -> u32 {
        u32::try_from(ROTATE_AFTER_S).expect("12 hours fit")
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        seal(&self.ring().current, plain)
    }

    fn decrypt(&self, cipher: &[u8]) -> Option<Vec<u8>> {
        let KeyRing {
            since: _,
            current,
            previous,
        } = self.ring();
        let plain = open(&current, cipher).or_else(|| open(&previous, cipher))?;
        self.0.resumed.fetch_add(1, Ordering::Relaxed);
        Some(plain)
    }
}

impl std::fmt::Debug for TicketKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TicketKeys(..)")
    }
}

/// A ticket is a random nonce, then what is sealed under it.
fn seal(key: &KeyBytes, plain: &[u8]) -> Option<Vec<u8>> {
    let nonce: [u8; NONCE_LEN] = random().ok()?;
    let mut sealed = plain.to_vec();
    aead(key)
        .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::empty(), &mut sealed)
        .ok()?;
    Some([&nonce[..], &sealed].concat())
}

fn open(key: &KeyBytes, ticket: &[u8]) -> Option<Vec<u8>> {
    let (nonce, sealed) = ticket.split_first_chunk::<NONCE_LEN>()?;
    let mut sealed = sealed.to_vec();
    let plain = aead(key)
        .open_in_place(Nonce::assume_unique_for_key(*nonce), Aad::empty(), &mut sealed)
        .ok()?;
    Some(plain.to_vec())
}

fn aead(key: &KeyBytes) -> LessSafeKey {
    LessSafeKey::new(UnboundKey::new(&CHACHA20_POLY1305, key).expect("a ChaCha20 key has 32 bytes"))
}

fn random<const N: usize>() -> Result<[u8; N], IdentityError> {
    let mut bytes = [0; N];
    SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| IdentityError::NoRandomness)?;
    Ok(bytes)
}

fn read(text: &str) -> Option<KeyRing> {
    let mut words = text.split_ascii_whitespace();
    words.next().filter(|&version| version == EXPORT_VERSION)?;
    let since = Wall(words.next()?.parse().ok()?);
    let mut key = || -> Option<KeyBytes> { BASE64.decode(words.next()?.as_bytes()).ok()?.try_into().ok() };
    Some(KeyRing {
        since,
        current: key()?,
        previous: key()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::server::ProducesTickets;

    #[test]
    fn a_ticket_outlives_a_restart_and_one_rotation_but_not_two() {
        let keys = TicketKeys::generate(Wall(0)).unwrap();
        let ticket = keys.encrypt(b"session").unwrap();
        let keys = TicketKeys::import(&keys.export()).unwrap();
        assert_eq!(keys.decrypt(&ticket).as_deref(), Some(&b"session"[..]));
        assert!(!keys.rotate_if_due(Wall::from_seconds(ROTATE_AFTER_S - 1)).unwrap());
        assert!(keys.rotate_if_due(Wall::from_seconds(ROTATE_AFTER_S)).unwrap());
        assert_eq!(keys.decrypt(&ticket).as_deref(), Some(&b"session"[..]));
        assert!(keys.rotate_if_due(Wall::from_seconds(2 * ROTATE_AFTER_S)).unwrap());
        assert_eq!(keys.decrypt(&ticket), None);
    }

    #[test]
    fn forged_and_short_tickets_and_damaged_exports_are_refused() {
        let keys = TicketKeys::generate(Wall(0)).unwrap();
        let mut ticket = keys.encrypt(b"session").unwrap();
        ticket[20] ^= 1;
        assert_eq!(keys.decrypt(&ticket), None);
        assert_eq!(keys.decrypt(b"short"), None);
        for bad in ["", "1 0", "2 0 AAAA AAAA", "1 x y z"] {
            assert!(TicketKeys::import(bad).is_err(), "{bad}");
        }
    }
}
