//! The join token: one word that a person copies to a new host. Its rules (uses, expiry, host
//! pattern) are the master's.

use crate::identity::Fingerprint;
use data_encoding::{BASE32_NOPAD, HEXLOWER_PERMISSIVE};
use proto::id::CellId;
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom, SystemRandom};
use std::fmt;
use std::str::FromStr;

/// What every token of this version begins with.
const PREFIX: &str = "gwj1-";

const SECRET_BYTES: usize = 20;
const CHECK_BYTES: usize = 4;
const BODY_BYTES: usize = 8 + 32 + SECRET_BYTES;

/// The right to join a cell, in the form `gwj1-` and 103 letters and digits, of which case does not
/// matter.
///
/// It holds a secret: show it once, store [`JoinToken::hash`].
#[derive(Clone, PartialEq, Eq)]
pub struct JoinToken {
    cell: CellId,
    ca: Fingerprint,
    secret: [u8; SECRET_BYTES],
}

impl JoinToken {
    /// A new token with 160 random bits for the cell whose CA has this fingerprint.
    ///
    /// # Errors
    /// `NoRandomness` if the system gives no random numbers.
    pub fn generate(cell: CellId, ca: Fingerprint) -> Result<Self, crate::IdentityError> {
        let mut secret = [0; SECRET_BYTES];
        SystemRandom::new()
            .fill(&mut secret)
            .map_err(|_| crate::IdentityError::NoRandomness)?;
        Ok(Self { cell, ca, secret })
    }

    /// The cell that issued the token.
    pub fn cell(&self) -> CellId {
        self.cell
    }

    /// The fingerprint of that cell's CA, by which the joining host knows the master.
    pub fn ca_fingerprint(&self) -> Fingerprint {
        self.ca
    }

    /// What the master stores and compares. The secret is random, so a plain digest reveals
    /// nothing.
    pub fn hash(&self) -> TokenHash {
        let digest = digest(&SHA256, &self.body());
        TokenHash(digest.as_ref().try_into().expect("a SHA-256 digest has 32 bytes"))
    }

    fn body(&self) -> Vec<u8> {
        [&self.cell.0.to_be_bytes()[..], &self.ca.0, &self.secret].concat()
    }
}

/// The whole token, secret included.
impl fmt::Display for JoinToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bytes = self.body();
        bytes.extend(check(&bytes));
        f.pad(&format!("{PREFIX}{}", BASE32_NOPAD.encode(&bytes).to_ascii_lowercase()))
    }
}

/// Without the secret: tokens end up in debug output.
impl fmt::Debug for JoinToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinToken")
            .field("cell", &self.cell)
            .finish_non_exhaustive()
    }
}

impl FromStr for JoinToken {
    type Err = BadToken;

    fn from_str(text: &str) -> Result<Self, BadToken> {
        let text = text.trim().to_ascii_lowercase();
        let word = text.strip_prefix(PREFIX).ok_or(BadToken::Prefix)?;
        let bytes = BASE32_NOPAD
            .decode(word.to_ascii_uppercase().as_bytes())
            .map_err(|_| BadToken::Mistyped)?;
        let (body, sum) = bytes.split_at_checked(BODY_BYTES).ok_or(BadToken::Mistyped)?;
        if sum != check(body) {
            return Err(BadToken::Mistyped);
        }
        let (cell, rest) = body.split_first_chunk::<8>().ok_or(BadToken::Mistyped)?;
        let (ca, secret) = rest.split_first_chunk::<32>().ok_or(BadToken::Mistyped)?;
        let secret = secret.try_into().map_err(|_| BadToken::Mistyped)?;
        Ok(Self {
            cell: CellId(u64::from_be_bytes(*cell)),
            ca: Fingerprint(*ca),
            secret,
        })
    }
}

/// Tells a mistyped token from a wrong one before anything is sent.
fn check(body: &[u8]) -> Vec<u8> {
    digest(&SHA256, &[b"check".as_slice(), body].concat()).as_ref()[..CHECK_BYTES].to_vec()
}

/// The text is not a join token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadToken {
    /// It does not begin as a token does.
    #[error("a join token begins with {PREFIX}; the arguments are MASTER TOKEN, in this order")]
    Prefix,
    /// A character is missing, too many, or another than was printed.
    #[error("the join token is incomplete or mistyped: copy the whole word again")]
    Mistyped,
}

/// The digest of a join token, as the master stores it: 64 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TokenHash([u8; 32]);

impl fmt::Display for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&HEXLOWER_PERMISSIVE.encode(&self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_token_is_one_word_that_hides_its_secret_from_debug_output() {
        let token = JoinToken::generate(CellId(1), Fingerprint([9; 32])).unwrap();
        let text = token.to_string();
        assert_eq!(text.len(), PREFIX.len() + 103);
        assert!(
            text.chars()
                .all(|c| c == '-' || c.is_ascii_lowercase() || c.is_ascii_digit())
        );
        assert_eq!(format!("{token:?}"), "JoinToken { cell: CellId(1), .. }");
        assert_ne!(
            JoinToken::generate(CellId(1), Fingerprint([9; 32])).unwrap().hash(),
            token.hash()
        );
        assert_eq!("node1".parse::<JoinToken>(), Err(BadToken::Prefix));
    }

    proptest! {
        #[test]
        fn a_token_reads_back_in_any_case(cell: u64, ca: [u8; 32], secret: [u8; SECRET_BYTES]) {
            let token = JoinToken { cell: CellId(cell), ca: Fingerprint(ca), secret };
            prop_assert_eq!(&token.to_string().parse::<JoinToken>().unwrap(), &token);
            prop_assert_eq!(&format!(" {}\n", token.to_string().to_uppercase()).parse::<JoinToken>().unwrap(), &token);
        }

        #[test]
        fn a_mistyped_token_is_recognised(place in PREFIX.len()..PREFIX.len() + 103, letter in "[a-z2-7]") {
            let token = JoinToken { cell: CellId(5), ca: Fingerprint([3; 32]), secret: [7; SECRET_BYTES] };
            let text = token.to_string();
            let mut typed = text.clone();
            typed.replace_range(place..=place, &letter);
            prop_assume!(typed != text);
            prop_assert_eq!(typed.parse::<JoinToken>(), Err(BadToken::Mistyped));
            prop_assert_eq!(text[..place].parse::<JoinToken>(), Err(BadToken::Mistyped));
        }
    }
}
