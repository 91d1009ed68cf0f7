//! The keys of session tickets on disk: they persist, so that a restarted master resumes the
//! sessions of its agents.

use crate::clock::wall_now;
use crate::issuer::KeyError;
use crate::layout::Layout;
use quic::TicketKeys;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::time::Duration;

/// How often the age of the keys is looked at.
const LOOK: Duration = Duration::from_secs(600);

/// The keys with their file.
pub struct Tickets {
    keys: TicketKeys,
    path: PathBuf,
}

impl Tickets {
    /// Reads the keys. Where they cannot be read new ones are made: every agent then needs one full
    /// handshake.
    ///
    /// # Errors
    /// `Unusable` if the system gives no random numbers.
    pub fn read(layout: &Layout) -> Result<Self, KeyError> {
        let path = layout.master("tickets.key");
        let stored = std::fs::read_to_string(&path)
            .ok()
            .and_then(|text| TicketKeys::import(text.trim()).ok());
        let keys = match stored {
            Some(keys) => keys,
            None => TicketKeys::generate(wall_now()).map_err(|source| KeyError::Unusable {
                path: path.clone(),
                source,
            })?,
        };
        Ok(Self { keys, path })
    }

    /// The keys, shared with whoever gets them.
    pub fn keys(&self) -> TicketKeys {
        self.keys.clone()
    }

    /// Makes new keys when it is time, for ever.
    pub async fn rotate(self) {
        loop {
            match self.keys.rotate_if_due(wall_now()) {
                Ok(false) => {}
                Ok(true) => {
                    if let Err(error) = self.write() {
                        tracing::warn!("cannot keep the ticket keys in {}: {error}", self.path.display());
                    }
                }
                Err(error) => tracing::warn!("{}", crate::error_chain(&error)),
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    fn write(&self) -> io::Result<()> {
        let new = self.path.with_extension("new");
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&new)?;
        file.write_all(self.keys.export().as_bytes())?;
        file.sync_all()?;
        std::fs::rename(new, &self.path)
    }
}
