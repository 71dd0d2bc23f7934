//! The store in memory keeps the rules that it is the measure for.

surefoot_testkit::store_suite!(memory, surefoot_testkit::MemoryFactory);
