//! Who a certificate says its holder is. Nothing here decides whether that holder is admitted.

use crate::error::{CertificateFaultKind, IdentityError};
use data_encoding::HEXLOWER_PERMISSIVE;
use proto::id::{CellId, HostName};
use proto::time::Wall;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::fmt;
use std::str::FromStr;
use x509_parser::certificate::X509Certificate;
use x509_parser::time::ASN1Time;
use x509_parser::x509::X509Name;

/// Seconds after its end during which a certificate that was not revoked is still admitted, so that
/// a host which was switched off for a while renews by itself (90 days).
pub const LATE_RENEWAL_S: i64 = 90 * 86_400;

/// The bytes of a serial number.
const SERIAL_BYTES: usize = 16;

/// The serial number of a certificate: 128 random bits. What is revoked is a serial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Serial([u8; SERIAL_BYTES]);

impl Serial {
    /// A serial of these bytes.
    pub(crate) fn new(bytes: [u8; SERIAL_BYTES]) -> Self {
        Self(bytes)
    }

    /// The bytes, the most significant first.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// From the integer in a certificate, which has a zero in front where the first bit is set and
    /// none where the first byte is zero.
    fn from_integer(raw: &[u8]) -> Option<Self> {
        let digits = &raw[raw.iter().take_while(|&&byte| byte == 0).count()..];
        let start = SERIAL_BYTES.checked_sub(digits.len())?;
        let mut bytes = [0; SERIAL_BYTES];
        bytes[start..].copy_from_slice(digits);
        Some(Self(bytes))
    }
}

/// 32 hexadecimal digits.
impl fmt::Display for Serial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&HEXLOWER_PERMISSIVE.encode(&self.0))
    }
}

impl FromStr for Serial {
    type Err = IdentityError;

    fn from_str(text: &str) -> Result<Self, IdentityError> {
        let bad = || IdentityError::BadSerial(text.to_owned());
        let bytes = HEXLOWER_PERMISSIVE.decode(text.as_bytes()).map_err(|_| bad())?;
        bytes.try_into().map(Self).map_err(|_| bad())
    }
}

/// The SHA-256 digest of a CA certificate: by it a host that joins knows the cell before it trusts
/// anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint(pub(crate) [u8; 32]);

impl Fingerprint {
    pub(crate) fn of_certificate(certificate: &[u8]) -> Self {
        let digest = ring::digest::digest(&ring::digest::SHA256, certificate);
        Self(digest.as_ref().try_into().expect("a SHA-256 digest has 32 bytes"))
    }
}

/// 64 hexadecimal digits.
impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&HEXLOWER_PERMISSIVE.encode(&self.0))
    }
}

/// What a certificate of the cell says about its holder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerIdentity {
    /// The host, in canonical form; of a master's own certificate the master's name.
    pub host: HostName,
    /// What would be revoked.
    pub serial: Serial,
    /// Not valid before this.
    pub not_before: Wall,
    /// Not valid after this, apart from [`LATE_RENEWAL_S`].
    pub not_after: Wall,
    /// The cell whose CA issued the certificate.
    pub cell: CellId,
}

impl PeerIdentity {
    /// What a certificate in PEM says. Neither its signature nor its time is checked.
    ///
    /// # Errors
    /// `BadCertificate` if the text is no certificate as the cluster CA issues them.
    pub fn from_pem(certificate: &str) -> Result<Self, IdentityError> {
        Self::from_der(&certificate_from_pem(certificate)?)
    }

    pub(crate) fn from_der(certificate: &[u8]) -> Result<Self, IdentityError> {
        let x509 = parse(certificate)?;
        let bad = |fault: CertificateFaultKind| IdentityError::bad_certificate(fault);
        Ok(Self {
            host: HostName::new(common_name(x509.subject()).ok_or_else(|| bad(CertificateFaultKind::NoHost))?),
            serial: Serial::from_integer(x509.raw_serial()).ok_or_else(|| bad(CertificateFaultKind::LongSerial))?,
            not_before: Wall::from_seconds(x509.validity().not_before.timestamp()),
            not_after: Wall::from_seconds(x509.validity().not_after.timestamp()),
            cell: cell_of(x509.subject()).ok_or_else(|| bad(CertificateFaultKind::NoCell))?,
        })
    }

    /// Whether less than a third of the certificate's life is left, or none.
    pub fn needs_renewal(&self, now: Wall) -> bool {
        let life_ms = self.not_after.0.saturating_sub(self.not_before.0);
        now.0 >= self.not_after.0.saturating_sub(life_ms / 3)
    }

    /// Whether `now` is inside the certificate's time.
    pub fn is_valid_at(&self, now: Wall) -> bool {
        self.not_before <= now && now <= self.not_after
    }

    /// The moment nearest to `now` at which the certificate is valid: the chain is verified at it,
    /// and time is judged afterwards, where the answer can say which clock showed what.
    pub(crate) fn nearest_valid(&self, now: Wall) -> Wall {
        now.min(self.not_after).max(self.not_before)
    }
}

/// The certificate of a cell's CA: what a host trusts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaCertificate {
    der: CertificateDer<'static>,
    cell: CellId,
}

impl CaCertificate {
    /// Reads a CA certificate in PEM.
    ///
    /// # Errors
    /// `BadCertificate` if the text is no certificate that [`crate::ClusterCa`] made.
    pub fn from_pem(text: &str) -> Result<Self, IdentityError> {
        Self::from_der(certificate_from_pem(text)?)
    }

    pub(crate) fn from_der(der: CertificateDer<'static>) -> Result<Self, IdentityError> {
        let x509 = parse(&der)?;
        if !x509.is_ca() {
            return Err(IdentityError::bad_certificate(CertificateFaultKind::NotOfCa));
        }
        let cell =
            cell_of(x509.subject()).ok_or_else(|| IdentityError::bad_certificate(CertificateFaultKind::NoCell))?;
        Ok(Self { der, cell })
    }

    /// The certificate in PEM.
    pub fn to_pem(&self) -> String {
        let body = data_encoding::BASE64.encode(&self.der);
        let lines: Vec<&str> = body
            .as_bytes()
            .chunks(64)
            .filter_map(|line| std::str::from_utf8(line).ok())
            .collect();
        format!(
            "-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n",
            lines.join("\n")
        )
    }

    /// What a join token carries.
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of_certificate(&self.der)
    }

    /// The cell of this CA.
    pub fn cell(&self) -> CellId {
        self.cell
    }

    pub(crate) fn der(&self) -> &CertificateDer<'static> {
        &self.der
    }
}

/// What a host or master proves itself with: its certificate, its key, and the CA it trusts.
#[derive(Debug)]
pub struct Credentials {
    certificate: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
    ca: CaCertificate,
    identity: PeerIdentity,
}

impl Credentials {
    /// Puts together what was stored as three PEM texts.
    ///
    /// # Errors
    /// `BadCertificate` or `BadKey` if one of them is not what it should be.
    pub fn from_pem(certificate: &str, key: &str, ca: &str) -> Result<Self, IdentityError> {
        let certificate = certificate_from_pem(certificate)?;
        let identity = PeerIdentity::from_der(&certificate)?;
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).map_err(IdentityError::bad_key)?;
        Ok(Self {
            certificate,
            key,
            ca: CaCertificate::from_pem(ca)?,
            identity,
        })
    }

    /// What our own certificate says.
    pub fn identity(&self) -> &PeerIdentity {
        &self.identity
    }

    /// The CA that peers are verified with.
    pub fn ca(&self) -> &CaCertificate {
        &self.ca
    }

    /// What is sent in the handshake. The CA's certificate goes along for those who know only its
    /// fingerprint.
    pub(crate) fn chain(&self) -> Vec<CertificateDer<'static>> {
        vec![self.certificate.clone(), self.ca.der.clone()]
    }

    pub(crate) fn key(&self) -> PrivateKeyDer<'static> {
        self.key.clone_key()
    }
}

/// The organisation in the subject of every certificate of a cell.
pub(crate) fn cell_text(cell: CellId) -> String {
    format!("{:016x}", cell.0)
}

/// A wall time for people, in UTC.
pub(crate) fn readable(time: Wall) -> String {
    ASN1Time::from_timestamp(time.seconds()).map_or_else(|_| format!("{} s", time.seconds()), |time| time.to_string())
}

fn certificate_from_pem(text: &str) -> Result<CertificateDer<'static>, IdentityError> {
    CertificateDer::from_pem_slice(text.as_bytes()).map_err(IdentityError::bad_certificate)
}

fn parse(certificate: &[u8]) -> Result<X509Certificate<'_>, IdentityError> {
    let (_, x509) = x509_parser::parse_x509_certificate(certificate).map_err(IdentityError::bad_certificate)?;
    Ok(x509)
}

fn common_name<'a>(name: &'a X509Name<'_>) -> Option<&'a str> {
    name.iter_common_name()
        .next()?
        .as_str()
        .ok()
        .filter(|name| !name.is_empty())
}

fn cell_of(name: &X509Name<'_>) -> Option<CellId> {
    let text = name.iter_organization().next()?.as_str().ok()?;
    u64::from_str_radix(text, 16)
        .ok()
        .map(CellId)
        .filter(|&cell| cell_text(cell) == text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serial_of_a_certificate_is_read_with_and_without_its_leading_zero() {
        assert_eq!(
            Serial::from_integer(&[&[0][..], &[0xff; 16]].concat()),
            Some(Serial([0xff; 16]))
        );
        let short = Serial::from_integer(&[7]).unwrap();
        assert_eq!(short.to_string(), "00000000000000000000000000000007");
        assert_eq!(short.to_string().parse::<Serial>().unwrap(), short);
        assert_eq!(Serial::from_integer(&[1; 17]), None);
        assert!("07".parse::<Serial>().is_err());
    }
}
