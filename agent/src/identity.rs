//! The certificates of this host: `agent/host.crt`, `host.key` and `ca.crt`.

use crate::layout::Layout;
use quic::{CaCertificate, Credentials, HostKey, IdentityError, PeerIdentity};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The host has no usable certificates.
#[derive(Debug, thiserror::Error)]
pub enum CredentialsError {
    /// A file is missing or unreadable.
    #[error("cannot read {}; a host gets its certificates with: gridwright join MASTER --token-file FILE", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        #[source]
        source: io::Error,
    },
    /// A file is not what it should be.
    #[error("{} cannot be used; a host gets its certificates with: gridwright join MASTER --token-file FILE", path.display())]
    Unusable {
        /// The file.
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
    let (certificate, key, ca) = (text("host.crt")?, text("host.key")?, text("ca.crt")?);
    // Each by itself first, so that the message names the file.
    PeerIdentity::from_pem(&certificate).map_err(unusable(layout, "host.crt"))?;
    HostKey::from_pem(&key).map_err(unusable(layout, "host.key"))?;
    CaCertificate::from_pem(&ca).map_err(unusable(layout, "ca.crt"))?;
    Credentials::from_pem(&certificate, &key, &ca).map_err(unusable(layout, "host.crt"))
}

fn unusable(layout: &Layout, name: &str) -> impl FnOnce(IdentityError) -> CredentialsError {
    let path = layout.agent(name);
    move |source| CredentialsError::Unusable { path, source }
}

/// A signing request for the key that the host has.
///
/// # Errors
/// As [`CredentialsError`].
pub fn renewal_request(layout: &Layout) -> Result<String, CredentialsError> {
    let path = layout.agent("host.key");
    let key = std::fs::read_to_string(&path).map_err(|source| CredentialsError::Unreadable { path, source })?;
    HostKey::from_pem(&key)
        .and_then(|key| key.csr_pem())
        .map_err(unusable(layout, "host.key"))
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
        let mut file: File = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(mode)
            .open(&draft)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&draft, path)
    };
    write().map_err(named)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proto::id::{CellId, HostName};
    use proto::time::Wall;
    use quic::ClusterCa;

    #[test]
    fn a_file_that_cannot_be_used_is_named() {
        let dir = std::env::temp_dir().join(format!("gridwright-agent-identity-{}", std::process::id()));
        std::fs::create_dir_all(dir.join("agent")).unwrap();
        let layout = Layout::new(&dir).unwrap();
        let now = Wall(1_800_000_000_000);
        let (ca, key) = (ClusterCa::create(CellId(1), now).unwrap(), HostKey::generate().unwrap());
        let certificate = ca
            .sign_csr(&key.csr_pem().unwrap(), &HostName::new("node1"), now, 86_400)
            .unwrap();
        let files = [
            ("host.crt", certificate),
            ("host.key", key.to_pem()),
            ("ca.crt", ca.certificate().to_pem()),
        ];
        for (name, text) in &files {
            std::fs::write(layout.agent(name), text).unwrap();
        }
        read(&layout).unwrap();
        for (name, text) in &files {
            std::fs::write(layout.agent(name), "garbage").unwrap();
            let told = read(&layout).unwrap_err().to_string();
            assert!(
                told.contains(&layout.agent(name).display().to_string()),
                "{name}: {told}"
            );
            std::fs::write(layout.agent(name), text).unwrap();
        }
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
