//! Rows of a batch as values of composite types of the schema.
//!
//! One array of them is one argument. An array per column would be one function call of the server per column, which is
//! what most of a small batch would cost.

/// A struct that is sent as a value of a type of the schema: its fields are the type's attributes, in their order.
macro_rules! composite {
    (
        $(#[$doc:meta])*
        $vis:vis struct $name:ident $(<$life:lifetime>)? as $type:literal { $($field:ident: $of:ty),* $(,)? }
    ) => {
        $(#[$doc])*
        #[derive(Debug, sqlx::Encode)]
        $vis struct $name $(<$life>)? { $($field: $of),* }

        impl $(<$life>)? $name $(<$life>)? {
            /// The type, and its attributes.
            pub(crate) const TYPE: (&'static str, &'static [&'static str]) =
                ($type, &[$(stringify!($field)),*]);
        }

        impl $(<$life>)? sqlx::Type<sqlx::Postgres> for $name $(<$life>)? {
            fn type_info() -> sqlx::postgres::PgTypeInfo {
                sqlx::postgres::PgTypeInfo::with_name($type)
            }
        }

        impl $(<$life>)? sqlx::postgres::PgHasArrayType for $name $(<$life>)? {
            fn array_type_info() -> sqlx::postgres::PgTypeInfo {
                sqlx::postgres::PgTypeInfo::array_of($type)
            }
        }
    };
}
pub(crate) use composite;
