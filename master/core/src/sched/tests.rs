//! What passes do, told in a small language: see [`lab`].

mod advance;
mod backfill;
mod categories;
mod configuration;
mod fcfs;
mod kept_back;
pub mod lab;
mod later;
mod laws;
mod masters;
mod memory;
mod pauses;
mod placement;
mod priority;
mod quotas;
mod recorded;
mod reference;
mod reservation;
mod schedule;
mod scopes;
mod settle;
mod shared;
mod subordinates;
mod thresholds;
mod ticket_laws;
mod tickets;
mod usage;
mod use_cases;
mod week;
mod worked;

use lab::check;
