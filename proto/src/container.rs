//! A container around a job: `-l container=IMAGE`, run by a runtime that the host or queue names.

use crate::complex::{Attribute, Relop};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The attribute that a job asks for with its image, and that hosts or queues set to their runtime.
pub const CONTAINER: &str = "container";

/// A program that runs containers with the rights of their user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ContainerRuntime {
    /// `apptainer exec`
    Apptainer,
    /// `singularity exec`
    Singularity,
    /// `podman run`
    Podman,
    /// `enroot start`
    Enroot,
}

impl ContainerRuntime {
    /// Reads the name of a runtime.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|runtime| runtime.as_str() == text)
    }
}

impl fmt::Display for ContainerRuntime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The container of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Container {
    /// What runs it.
    pub runtime: ContainerRuntime,
    /// The image, as the job names it.
    pub image: String,
}

/// Whether an attribute means containers: a text that is compared by `!=`, so that a host which
/// names its runtime offers every image.
///
/// An attribute of this name with another comparison is the site's own.
pub fn is_container(attribute: &Attribute) -> bool {
    attribute.name.as_str() == CONTAINER && attribute.relop == Relop::NotEqual && !attribute.r#type.is_numeric()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::complex::Complex;

    #[test]
    fn the_attribute_means_containers_only_where_it_is_compared_by_unequal() {
        for (relop, expected) in [("!=", true), ("==", false)] {
            let text = format!(
                "{}\ncontainer container STRING {relop} YES NO NONE 0",
                Complex::built_in()
            );
            let complex = Complex::parse(&text).unwrap();
            assert_eq!(is_container(complex.lookup(CONTAINER).unwrap()), expected, "{relop}");
        }
        assert_eq!(ContainerRuntime::parse("podman"), Some(ContainerRuntime::Podman));
        assert_eq!(ContainerRuntime::parse("docker"), None);
    }
}
