//! The authoring language and the typed half of Surefoot: YAML to plans, action traits, modules.
