//! The engine beside a plain model: random writes, restarts, failing disks and losses of power, and readers among them.

mod churn;
mod compare;
mod condition;
mod damage;
mod drive;
mod faults;
mod filters;
mod found;
mod lives;
mod many;
mod memory;
mod model;
mod mortal;
mod plain;
mod power;
mod property;
mod quantized;
mod random;
mod readers;
mod recall;
mod repair;
mod replay;
mod rows;
mod shapes;
mod space;
mod text;
