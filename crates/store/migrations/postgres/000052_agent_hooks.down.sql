DROP TABLE tenant_hook_budget;
DROP TABLE hook_executions;
DROP TABLE agent_hooks;
