//! What the package and the playground both work out around a case, and the simulator does not.
//!
//! `bind/` calls it for Python, `page/` for the browser, so that each idea stands once. `draws` has
//! Python's random numbers, `layout` the texts of preparations, `micro` the micro-benchmarks'
//! operations, `energy` the two conventions of energy, `lifetime` the rules of years. Floating
//! point is used here, in draws and in years, and never in the simulator.
//!
//! Left out: intervals of lifetimes, and everything that reads a table. Those are Python's.

pub mod draws;
pub mod energy;
pub mod layout;
pub mod lifetime;
pub mod micro;
