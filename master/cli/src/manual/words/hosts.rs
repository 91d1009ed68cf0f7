//! What the pages of commands say that are about the devices of hosts.

use super::PageTexts;

pub const RESOURCES: PageTexts = PageTexts {
    name: "resources",
    description: &[
        "NVIDIA's GPUs and MIG instances are found by `nvidia-smi`, AMD's below `/sys/class/kfd`. Each becomes an \
         id with its device files (`devices`) and the name that programs have for it (`uuid`). Nothing is changed: \
         an administrator takes what is right into the complex and into `complex_values` of the host.",
    ],
    examples: &[("gridwright resources suggest", "The map of this host.")],
    environment: &[],
    files: &[],
    see_also: &["gridwright-doctor(1)", "qconf(1)", "qhost(1)"],
};
