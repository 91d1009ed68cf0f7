//! The cluster CA and the keys of hosts. Keys are made where they are used: the CA signs a request
//! and never sees a host's key.

use crate::error::IdentityError;
use crate::identity::{CaCertificate, Serial, cell_text};
use proto::id::{CellId, HostName};
use proto::time::Wall;
use rcgen::{
    BasicConstraints, CertificateParams, CertificateSigningRequestParams, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose, SanType, SerialNumber,
};
use ring::rand::{SecureRandom, SystemRandom};
use std::time::Duration;

/// How long a host's certificate is valid unless the caller says otherwise, in seconds (one year).
pub const DEFAULT_VALIDITY_S: i64 = 365 * 86_400;

/// How far back the beginning of a certificate is set, in seconds, for hosts whose clocks are
/// behind.
const BACKDATED_S: i64 = 3_600;

/// How long a CA is valid, in seconds (30 years): a cell does not outlive its hardware, and nothing
/// renews a CA yet.
const CA_VALIDITY_S: i64 = 30 * 365 * 86_400;

/// The longest name that a certificate's common name holds (RFC 5280, `ub-common-name`).
const HOST_NAME_MAX: usize = 64;

/// The certificate authority of one cell: its key and its certificate.
pub struct ClusterCa {
    issuer: Issuer<'static, KeyPair>,
    certificate: CaCertificate,
}

impl ClusterCa {
    /// Makes the CA of a new cell. Its key is ECDSA P-256.
    ///
    /// # Errors
    /// `NoRandomness` or `Signing` if the system gives no random numbers.
    pub fn create(cell: CellId, now: Wall) -> Result<Self, IdentityError> {
        let key = KeyPair::generate().map_err(IdentityError::Signing)?;
        let params = ca_params(cell, now)?;
        let certificate = params.self_signed(&key).map_err(IdentityError::Signing)?;
        let certificate = CaCertificate::from_der(certificate.der().clone())?;
        Ok(Self {
            issuer: Issuer::new(params, key),
            certificate,
        })
    }

    /// Reads a CA back from its two PEM texts.
    ///
    /// # Errors
    /// `BadCertificate` or `BadKey` if one of them is damaged, `KeyMismatch` if they do not belong
    /// together.
    pub fn from_pem(certificate: &str, key: &str) -> Result<Self, IdentityError> {
        let key = KeyPair::from_pem(key).map_err(IdentityError::bad_key)?;
        let certificate = CaCertificate::from_pem(certificate)?;
        require_key(&certificate, &key)?;
        let issuer = Issuer::from_ca_cert_der(certificate.der(), key).map_err(IdentityError::bad_certificate)?;
        Ok(Self { issuer, certificate })
    }

    /// The certificate, which every host gets.
    pub fn certificate(&self) -> &CaCertificate {
        &self.certificate
    }

    /// The private key in PEM. Whoever reads it can admit hosts: store it for the master alone.
    pub fn key_pem(&self) -> String {
        self.issuer.key().serialize_pem()
    }

    /// Issues a certificate for `host` to the holder of the key behind `csr` (a signing request in
    /// PEM), valid for `validity_s` seconds from `now`. Nothing but the public key is taken from
    /// the request: the name is the caller's decision.
    ///
    /// # Errors
    /// `BadRequest` if the request is damaged or not signed with its own key, `BadHostName` if the
    /// name does not fit.
    pub fn sign_csr(&self, csr: &str, host: &HostName, now: Wall, validity_s: i64) -> Result<String, IdentityError> {
        self.issue(csr, host, now, validity_s, ExtendedKeyUsagePurpose::ClientAuth)
    }

    /// Issues the certificate that the master itself serves with. No certificate of
    /// [`ClusterCa::sign_csr`] can stand in for it: a host that is taken over cannot pose as the
    /// master.
    ///
    /// # Errors
    /// As [`ClusterCa::sign_csr`].
    pub fn sign_master_csr(
        &self,
        csr: &str,
        host: &HostName,
        now: Wall,
        validity_s: i64,
    ) -> Result<String, IdentityError> {
        self.issue(csr, host, now, validity_s, ExtendedKeyUsagePurpose::ServerAuth)
    }

    fn issue(
        &self,
        csr: &str,
        host: &HostName,
        now: Wall,
        validity_s: i64,
        usage: ExtendedKeyUsagePurpose,
    ) -> Result<String, IdentityError> {
        let mut request = CertificateSigningRequestParams::from_pem(csr).map_err(IdentityError::BadRequest)?;
        request.params = host_params(host, self.certificate.cell(), now, validity_s)?;
        request.params.extended_key_usages = vec![usage];
        let certificate = request.signed_by(&self.issuer).map_err(IdentityError::Signing)?;
        Ok(certificate.pem())
    }
}

/// The private key of a host, made on that host and never sent anywhere. ECDSA P-256.
pub struct HostKey(KeyPair);

impl HostKey {
    /// Makes a new key.
    ///
    /// # Errors
    /// `Signing` if the system gives no random numbers.
    pub fn generate() -> Result<Self, IdentityError> {
        KeyPair::generate().map(Self).map_err(IdentityError::Signing)
    }

    /// Reads a key back.
    ///
    /// # Errors
    /// `BadKey` if the text is no private key.
    pub fn from_pem(text: &str) -> Result<Self, IdentityError> {
        KeyPair::from_pem(text).map(Self).map_err(IdentityError::bad_key)
    }

    /// The key in PEM, for a file that only the agent reads.
    pub fn to_pem(&self) -> String {
        self.0.serialize_pem()
    }

    /// A signing request in PEM, which proves that its sender holds this key.
    ///
    /// # Errors
    /// `Signing` if the key cannot sign.
    pub fn csr_pem(&self) -> Result<String, IdentityError> {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        let request = params.serialize_request(&self.0).map_err(IdentityError::Signing)?;
        request.pem().map_err(IdentityError::Signing)
    }
}

fn ca_params(cell: CellId, now: Wall) -> Result<CertificateParams, IdentityError> {
    let mut params = CertificateParams::default();
    params.distinguished_name = subject(&format!("Gridwright CA of cell {}", cell_text(cell)), cell);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.serial_number = Some(new_serial()?);
    set_validity(&mut params, now, CA_VALIDITY_S);
    Ok(params)
}

fn host_params(host: &HostName, cell: CellId, now: Wall, validity_s: i64) -> Result<CertificateParams, IdentityError> {
    let name = host.as_str();
    let bad = || IdentityError::BadHostName(name.to_owned());
    if name.is_empty() || name.len() > HOST_NAME_MAX || host.is_global() {
        return Err(bad());
    }
    let mut params = CertificateParams::default();
    params.distinguished_name = subject(name, cell);
    params.subject_alt_names = vec![SanType::DnsName(name.try_into().map_err(|_| bad())?)];
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.serial_number = Some(new_serial()?);
    params.use_authority_key_identifier_extension = true;
    set_validity(&mut params, now, validity_s);
    Ok(params)
}

fn subject(common_name: &str, cell: CellId) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::OrganizationName, cell_text(cell));
    name.push(DnType::CommonName, common_name);
    name
}

fn set_validity(params: &mut CertificateParams, now: Wall, validity_s: i64) {
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    let at = |seconds: i64| epoch + Duration::from_secs(seconds.clamp(0, LAST_SECOND).unsigned_abs());
    params.not_before = at(now.seconds().saturating_sub(BACKDATED_S));
    params.not_after = at(now.seconds().saturating_add(validity_s));
}

/// The end of the year 9999, the last that a certificate can express, in seconds since the epoch.
const LAST_SECOND: i64 = 253_402_300_799;

fn new_serial() -> Result<SerialNumber, IdentityError> {
    let mut bytes = [0; 16];
    SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| IdentityError::NoRandomness)?;
    Ok(SerialNumber::from_slice(Serial::new(bytes).as_bytes()))
}

/// A CA whose key is another's would issue certificates that nobody accepts, and nobody could say
/// why.
fn require_key(certificate: &CaCertificate, key: &KeyPair) -> Result<(), IdentityError> {
    let (_, x509) = x509_parser::parse_x509_certificate(certificate.der()).map_err(IdentityError::bad_certificate)?;
    let same = x509.public_key().subject_public_key.data.as_ref() == key.public_key_raw();
    if same { Ok(()) } else { Err(IdentityError::KeyMismatch) }
}

impl std::fmt::Debug for ClusterCa {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClusterCa")
            .field("fingerprint", &self.certificate.fingerprint())
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for HostKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("HostKey(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Credentials, PeerIdentity};

    const NOW: Wall = Wall(1_800_000_000_000);

    fn certificate(ca: &ClusterCa, host: &str) -> Result<PeerIdentity, IdentityError> {
        let csr = HostKey::generate()?.csr_pem()?;
        PeerIdentity::from_pem(&ca.sign_csr(&csr, &HostName::new(host), NOW, DEFAULT_VALIDITY_S)?)
    }

    #[test]
    fn a_host_certificate_says_host_cell_and_time() {
        let ca = ClusterCa::create(CellId(0xab), NOW).unwrap();
        let identity = certificate(&ca, "Node1.example").unwrap();
        assert_eq!((identity.host.as_str(), identity.cell), ("node1.example", CellId(0xab)));
        assert_eq!(identity.not_before.seconds(), NOW.seconds() - 3_600);
        assert_eq!(identity.not_after.seconds(), NOW.seconds() + DEFAULT_VALIDITY_S);
        assert_ne!(identity.serial, certificate(&ca, "node1.example").unwrap().serial);
    }

    #[test]
    fn renewal_is_due_in_the_last_third_and_after_the_end() {
        let ca = ClusterCa::create(CellId(1), NOW).unwrap();
        let identity = certificate(&ca, "node1").unwrap();
        let after_days = |days: i64| Wall::from_seconds(NOW.seconds() + days * 86_400);
        let due = [0, 240, 250, 400].map(|days| identity.needs_renewal(after_days(days)));
        assert_eq!(due, [false, false, true, true]);
    }

    #[test]
    fn a_ca_reads_back_and_refuses_the_key_of_another() {
        let (ca, other) = (
            ClusterCa::create(CellId(1), NOW).unwrap(),
            ClusterCa::create(CellId(1), NOW).unwrap(),
        );
        let pem = ca.certificate().to_pem();
        let back = ClusterCa::from_pem(&pem, &ca.key_pem()).unwrap();
        assert_eq!(back.certificate(), ca.certificate());
        assert!(certificate(&back, "node1").is_ok());
        assert!(matches!(
            ClusterCa::from_pem(&pem, &other.key_pem()),
            Err(IdentityError::KeyMismatch)
        ));
    }

    #[test]
    fn damaged_texts_and_impossible_names_are_refused() {
        let ca = ClusterCa::create(CellId(1), NOW).unwrap();
        assert!(matches!(certificate(&ca, "global"), Err(IdentityError::BadHostName(_))));
        assert!(matches!(
            certificate(&ca, &"x".repeat(65)),
            Err(IdentityError::BadHostName(_))
        ));
        let csr = HostKey::generate().unwrap().csr_pem().unwrap();
        let flipped = csr.replacen("MI", "MJ", 1);
        let result = ca.sign_csr(&flipped, &HostName::new("a"), NOW, 1);
        assert!(matches!(result, Err(IdentityError::BadRequest(_))));
        assert!(matches!(
            Credentials::from_pem("", "", ""),
            Err(IdentityError::BadCertificate(_))
        ));
    }
}
