//! Advance reservations: what users reserve, and what they send there.

use super::workload::owner;
use super::world::World;
use proto::id::ReservationId;
use proto::job::{JobSpec, Requests};
use proto::reservation::ReservationSpec;
use proto::time::Wall;
use proto::wire::client::Command;

/// Of the reservations that users know, so many may still be there.
const REMEMBERED: usize = 5;

impl World {
    /// Somebody reserves, or gives a reservation up.
    pub(super) fn reservation_acts(&mut self) {
        if self.random.chance(200) {
            let known = self.known_reservations();
            if let Some(id) = self.random.pick(&known) {
                let force = self.random.chance(300);
                self.give_up(id, force);
            }
            return;
        }
        self.counts.reservations_wanted += 1;
        let spec = self.draw_reservation();
        self.command("boss", Command::Reserve(Box::new(spec)));
    }

    pub(super) fn give_up(&mut self, id: ReservationId, force: bool) {
        let targets = vec![id.to_string()];
        self.command(
            "boss",
            Command::DeleteReservations {
                targets,
                users: Vec::new(),
                force,
            },
        );
    }

    fn known_reservations(&self) -> Vec<ReservationId> {
        let known = &self.users.reservations;
        known[known.len().saturating_sub(REMEMBERED)..].to_vec()
    }

    fn draw_reservation(&mut self) -> ReservationSpec {
        let mean_ms = self.plan.pace.run_ms;
        let wait_ms = if self.random.chance(400) {
            0
        } else {
            self.random.around(2 * mean_ms)
        };
        let mut requests = Requests::default();
        match self.random.below(6) {
            0 => requests.pe = self.draw_pe("smp"),
            1 | 2 => requests.pe = self.draw_pe("mpi"),
            _ => {}
        }
        let asked = self
            .random
            .pick(&["lic=1", "h_vmem=2G", "gpu=1", ""])
            .unwrap_or_default();
        if !asked.is_empty() {
            requests.hard = self.draw_resources(asked);
        }
        ReservationSpec {
            name: String::new(),
            owner: owner("boss"),
            account: None,
            start: (wait_ms > 0).then(|| Wall(self.wall().0 + i64::try_from(wait_ms).unwrap_or(0))),
            end: None,
            duration_s: Some(1 + self.random.around(5 * mean_ms) / 1_000),
            requests,
            checkpoint: None,
            immediate: false,
            users: ["u1", "u2", "u3"].map(str::to_owned).to_vec(),
            hard_error: self.random.chance(300),
            mail: Default::default(),
            mail_to: Vec::new(),
            verify: false,
        }
    }

    /// Some jobs are for a reservation of which somebody knows.
    pub(super) fn send_to_reservation(&mut self, spec: &mut JobSpec) {
        if self.random.chance(150) {
            let known = self.known_reservations();
            spec.reservation = self.random.pick(&known);
            self.suit_environment(spec);
        }
    }

    /// What goes to a reservation of a parallel environment is mostly a job of that.
    fn suit_environment(&mut self, spec: &mut JobSpec) {
        if !self.has_scopes() {
            return;
        }
        let reserved = spec.reservation.and_then(|id| self.state().reservations.get(&id));
        let pe = reserved
            .and_then(|reserved| reserved.spec.requests.pe.as_ref())
            .map(|pe| pe.name.clone());
        let Some(pe) = pe.filter(|_| self.random.chance(700)) else {
            return;
        };
        spec.requests = Requests {
            pe: self.draw_pe(&pe),
            ..Requests::default()
        }
        .into();
        self.draw_scopes(spec);
    }
}
