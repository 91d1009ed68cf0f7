//! The certificates of this host: `agent/host.crt`, `host.key` and `ca.crt`.

use crate::layout::Layout;
use quic::{Credentials, HostKey, IdentityError};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The host has no usable certificates.
#[derive(Debug, thiserror::Error)]
pub enum CredentialsError {
    /// A file is missing or unreadable.
    #[error("cannot read {}; a host gets its certificates with: gridwright join MASTER TOKEN", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        #[source]
        source: io::Error,
    },
    /// They are not what they should be.
    #[error("the certificates in {} cannot be used", path.display())]
    Unusable {
        /// Their directory.
        path: PathBuf,
        /// Why.
        #[source]
        source: IdentityError,
    },
}

/// Reads the certificates of the host.
///
/// # Errors
/// As [`CredentialsError`].
pub fn read(layout: &Layout) -> Result<Credentials, CredentialsError> {
    let text = |name: &str| {
        let path = layout.agent(name);
        std::fs::read_to_string(&path).map_err(|source| CredentialsError::Unreadable { path, source })
    };
    Credentials::from_pem(&text("host.crt")?, &text("host.key")?, &text("ca.crt")?)
        .map_err(|source| CredentialsError::Unusable { path: layout.agent(""), source })
}

/// A signing request for the key that the host has.
///
/// # Errors
/// As [`CredentialsError`].
pub fn renewal_request(layout: &Layout) -> Result<String, CredentialsError> {
    let path = layout.agent("host.key");
    let key = std::fs::read_to_string(&path).map_err(|source| CredentialsError::Unreadable { path, source })?;
    let unusable = |source| CredentialsError::Unusable { path: layout.agent(""), source };
    HostKey::from_pem(&key).and_then(|key| key.csr_pem()).map_err(unusable)
}

/// Writes a file so that it is whole or not there, whatever happens.
///
/// # Errors
/// Errors of the file system, with the file's name.
pub fn write_file(path: &Path, text: &str, mode: u32) -> io::Result<()> {
    let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
    let draft = path.with_extension("new");
    let write = || -> io::Result<()> {
        match std::fs::remove_file(&draft) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        // A new file: what is there already could be a link, or have other rights.
        let mut file: File = OpenOptions::new().write(true).create_new(true).mode(mode).open(&draft)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&draft, path)
    };
    write().map_err(named)
}
