DROP INDEX hook_changes_by_time;
DROP INDEX turns_by_tenant;
