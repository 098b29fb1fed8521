"""Several machines over one Postgres, as network namespaces of this one."""
