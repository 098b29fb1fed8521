"""A migrated database as one readable file of SQL: `sql/schema.sql`."""
