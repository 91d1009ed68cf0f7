//! Core binding in the XML of `qstat -j`, in the names of Grid Engine 8.1.9.

use crate::output::xml::XmlDocument;
use proto::binding::{BindingRequest, BindingStrategy, CoreAmount, CorePlace, HostBinding};

/// The number of cores of `linear:slots` in 8.1.9.
const SLOTS: u32 = i32::MAX as u32;

/// The numbers of a request.
#[derive(Default)]
struct Parameters {
    amount: u32,
    first: Option<CorePlace>,
    step: u32,
}

/// The request of a job.
pub(super) fn request(document: &mut XmlDocument, request: Option<&BindingRequest>) {
    document.open("JB_binding");
    match request {
        Some(request) => {
            document.open("binding");
            document.leaf("BN_strategy", strategy(&request.strategy));
            numbers(document, request.instance.number(), &parameters(&request.strategy));
            if let BindingStrategy::Explicit(_) = &request.strategy {
                document.leaf("BN_parameter_explicit", &request.strategy);
            }
        }
        None => {
            document.open("element");
            document.leaf("BN_strategy", "no_job_binding");
            numbers(document, 0, &Parameters::default());
            document.leaf("BN_parameter_explicit", "no_explicit_binding");
        }
    }
    document.close();
    document.close();
}

fn numbers(document: &mut XmlDocument, instance: u32, parameters: &Parameters) {
    let first = parameters.first.unwrap_or(CorePlace { socket: 0, core: 0 });
    document.leaf("BN_type", instance);
    document.leaf("BN_parameter_n", parameters.amount);
    document.leaf("BN_parameter_socket_offset", first.socket);
    document.leaf("BN_parameter_core_offset", first.core);
    document.leaf("BN_parameter_striding_step_size", parameters.step);
}

fn strategy(strategy: &BindingStrategy) -> &'static str {
    match strategy {
        BindingStrategy::Linear { first: None, .. } => "linear_automatic",
        BindingStrategy::Linear { first: Some(_), .. } => "linear",
        BindingStrategy::Striding { first: None, .. } => "striding_automatic",
        BindingStrategy::Striding { first: Some(_), .. } => "striding",
        BindingStrategy::Explicit(_) => "explicit",
    }
}

fn parameters(strategy: &BindingStrategy) -> Parameters {
    match *strategy {
        BindingStrategy::Linear { amount, first } => Parameters {
            amount: match amount {
                CoreAmount::Slots => SLOTS,
                CoreAmount::Cores(cores) => cores,
            },
            first,
            step: 0,
        },
        BindingStrategy::Striding { amount, step, first } => Parameters { amount, first, step },
        BindingStrategy::Explicit(_) => Parameters::default(),
    }
}

/// The cores of a task on each host, in the form of a use with the value 0.
pub(super) fn in_use(document: &mut XmlDocument, binding: &[HostBinding]) {
    for cores in binding.iter().filter_map(HostBinding::bound) {
        document.open("scaled");
        document.leaf("UA_name", format_args!("binding_inuse!{cores}"));
        document.leaf("UA_value", "0.000000");
        document.close();
    }
}
