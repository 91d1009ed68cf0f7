//! Real cells with the built programs: `cargo build --workspace` comes before. `tests/long/e2e`
//! runs the longer forms.

#[path = "e2e/backfill.rs"]
mod backfill;
#[path = "e2e/boundary.rs"]
mod boundary;
#[path = "e2e/carried.rs"]
mod carried;
#[path = "e2e/categories.rs"]
mod categories;
#[path = "e2e/checkpoints.rs"]
mod checkpoints;
#[path = "e2e/copies.rs"]
mod copies;
#[path = "e2e/crash.rs"]
mod crash;
#[path = "e2e/damage.rs"]
mod damage;
#[path = "e2e/doctor.rs"]
mod doctor;
#[path = "e2e/explained.rs"]
mod explained;
#[path = "e2e/external.rs"]
mod external;
#[path = "e2e/full.rs"]
mod full;
#[path = "e2e/hostile.rs"]
mod hostile;
#[path = "e2e/hosts.rs"]
mod hosts;
#[path = "e2e/input.rs"]
mod input;
#[path = "e2e/jobs.rs"]
mod jobs;
#[path = "e2e/licences.rs"]
mod licences;
#[path = "e2e/life.rs"]
mod life;
#[path = "e2e/logs.rs"]
mod logs;
#[path = "e2e/many.rs"]
mod many;
#[path = "e2e/names.rs"]
mod names;
#[path = "e2e/operator.rs"]
mod operator;
#[path = "e2e/parameters.rs"]
mod parameters;
#[path = "e2e/priorities.rs"]
mod priorities;
#[path = "e2e/quotas.rs"]
mod quotas;
#[path = "e2e/reservations.rs"]
mod reservations;
#[path = "e2e/scopes.rs"]
mod scopes;
#[path = "e2e/sensors.rs"]
mod sensors;
#[path = "e2e/shares.rs"]
mod shares;
#[path = "e2e/shown.rs"]
mod shown;
#[path = "e2e/sick.rs"]
mod sick;
#[path = "e2e/slaves.rs"]
mod slaves;
#[path = "e2e/surroundings.rs"]
mod surroundings;
#[path = "e2e/tokens.rs"]
mod tokens;
#[path = "e2e/tolerances.rs"]
mod tolerances;
#[path = "e2e/usage.rs"]
mod usage;
#[path = "e2e/waits.rs"]
mod waits;
