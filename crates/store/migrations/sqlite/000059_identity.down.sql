DROP TABLE identity_epoch;
DROP TABLE gateway_uses;
DROP TABLE console_sessions;
DROP TABLE console_links;
DROP TABLE api_keys;
DROP TABLE members;
DROP TABLE tenant_stops;
