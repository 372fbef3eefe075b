package configs

import (
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/callgate/callgate/internal/testkit/configtest"
)

// beyondSchemas are the faults of testdata/faulty that no schema of a file refuses, by the reason.
var beyondSchemas = map[string][]string{
	"it is how the text is written, and a schema sees values alone": {
		"json-byte-order-mark", "json-duplicate-key", "json-number-form", "json-single-quotes",
		"json-trailing-comma", "json-trailing-comma-in-object", "main-auth-flag-shouted",
		"main-output-max-bytes-exponent", "main-output-max-bytes-hexadecimal", "main-output-max-bytes-octal",
		"main-output-max-bytes-underscore", "main-output-max-depth-fraction", "tests-arguments-octal",
		"tests-name-hidden", "tests-no-end", "tests-only-comments", "text-after-end-line", "text-byte-order-mark",
		"text-carriage-return-alone", "text-cut-within-end-line", "text-empty-line-after-end",
		"text-end-line-indented", "text-end-line-shouted", "text-line-separator", "text-next-line",
		"text-no-end-line", "tool-schema-boolean-shouted", "tool-schema-empty-member", "tool-schema-hexadecimal",
		"tool-schema-infinite", "yaml-anchor", "yaml-broken-second-document", "yaml-deep-nesting", "yaml-directive",
		"yaml-directive-tag", "yaml-duplicate-key", "yaml-duplicate-key-in-quotes", "yaml-duplicate-key-in-schema",
		"yaml-key-boolean", "yaml-key-null", "yaml-key-number", "yaml-own-tag", "yaml-second-document", "yaml-tag",
		"yaml-tag-bare",
	},
	"it is about other files: that they are there, and what is in them": {
		"approvals-notify-key-short", "file-approvals-missing", "file-default-tools-missing", "file-limits-missing",
		"file-main-directory", "file-main-missing", "file-policy-missing", "file-principals-missing",
		"file-tools-bad-pattern", "file-tools-directory", "file-tools-no-match", "file-workspaces-directory",
		"jwt-ca-missing", "main-audit-otlp-ca-missing", "redis-ca-missing", "redis-ca-no-certificate",
		"servers-missing-file", "tests-absent", "tests-agent-unknown", "tests-expect-rule-itself",
		"tests-expect-rule-unknown", "tests-fails", "tests-fails-by-schema", "tests-fails-never", "tests-fails-row",
		"tests-fails-row-only", "tests-malformed-pattern", "tests-project-bare", "tests-project-unknown",
		"tests-row-absent", "tests-row-unreadable", "tests-thread-label-unknown", "tests-thread-schema", "tests-thread-tool-unknown", "tests-tool-unknown", "traces-ca-missing",
		"upstreams-missing-file", "budgets-money-no-prices", "file-prices-missing", "prices-missing", "prices-other-currency",
	},
	"it compares places of one file, or of several, with one another": {
		"tests-thread-many", "tests-thread-order",
		"hooks-label-denies", "hooks-label-none", "hooks-label-text", "hooks-label-unknown", "hooks-label-url", "hooks-label-without-list",
		"hooks-labels-patterns", "hooks-labels-unknown", "hooks-on-match-url", "hooks-timeout-patterns", "hooks-tools-text", "hooks-twice",
		"approvals-approve-caller", "approvals-approve-none", "approvals-notify-same-keys", "callbacks-no-address", "file-tools-empty-list",
		"callbacks-no-shared-keys", "jwt-beside-mode-keys", "jwt-claim-operator-twice", "jwt-claim-registered",
		"jwt-claim-twice", "jwt-stale-if-error-below-refresh", "jwt-two-sources", "limits-replicas-not-stated", "threads-counted-alone",
		"limits-threads-counted-alone", "limits-threads-empty", "limits-threads-equal-empty",
		"main-admin-beyond-loopback", "main-admin-without-operator", "main-auth-mode-jwt", "main-auth-mode-keys",
		"main-listen-beyond-loopback", "main-listeners-default", "main-listeners-equal", "main-store-kind-redis", "principal-agent-like-role", "principal-hooks-only", "principal-key-twice",
		"principal-name-like-token", "principal-name-twice", "project-agent-like-role",
		"project-resource-named-path", "project-root-twice", "redis-cluster-ca-without-tls",
		"redis-url-beside-password", "redis-url-beside-tls", "redis-url-ca-without-tls", "servers-prefix-twice",
		"servers-twice", "store-min-redis-replicas-beside-nothing", "store-replicas-beside-file",
		"tests-expect-allow-without-arguments", "tests-expect-always-with-arguments", "tests-name-twice",
		"tool-names-collide", "tool-twice-across-files", "tool-twice-in-one-file", "tool-twice-without-version",
		"traces-header-twice", "budgets-twice", "prices-twice", "threads-default-labels-unknown", "threads-default-labels-without-labels",
		"threads-keep-labels-below-idle", "tool-labels-argument", "tool-labels-twice", "tool-labels-unknown", "tool-labels-without-list",
		"servers-labels-unknown", "tool-credential-exchange-auth-mode", "tool-credential-exchange-subject-type", "tool-credential-exchange-entra-audience",
		"tool-credential-exchange-entra-default-and-more", "tool-credential-exchange-entra-no-scopes", "tool-credential-exchange-entra-resources",
		"tool-credential-exchange-entra-scope",
	},
	"it compares what a text means (a duration, an address, a URL, a count of bytes) with a bound or a form that no pattern says": {
		"hooks-header-own", "hooks-pattern-long", "hooks-pattern-look", "hooks-pattern-nothing", "hooks-timeout",
		"approvals-hint-long", "approvals-notify-address", "approvals-notify-userinfo", "approvals-remember-long",
		"approvals-wait-long", "approvals-within-long", "jwt-audience-spaces", "jwt-clock-skew-too-long",
		"jwt-issuer-http", "jwt-issuer-query", "jwt-issuer-user", "jwt-issuer-word", "jwt-jwks-url-fragment",
		"jwt-jwks-url-http", "jwt-refresh-too-short", "jwt-startup-timeout-too-long", "limits-rate-too-large",
		"main-audit-otlp-timeout-long", "main-data-dir-place", "main-listen-port-too-large", "project-host-ip-hexadecimal",
		"project-host-ip-short", "redis-cluster-address-port-zero", "redis-sentinel-address-no-host",
		"servers-env-no-place", "servers-timeout", "tool-name-too-long", "tool-run-address-prefix",
		"servers-start-timeout-long", "tool-run-max-age", "tool-run-timeout-too-long", "tool-run-url-broken", "tool-run-url-user-info",
		"traces-timeout-too-long", "budgets-money-much", "budgets-money-zero", "budgets-project", "budgets-zone",
		"threads-idle-short", "limits-threads-equal-tool-name", "limits-threads-equal-within-long", "tool-labels-host",
		"tool-credential-exchange-max-age",
	},
	"it is in the schema of a tool, which is not judged by the schema of its file but by that of schemas": {
		"json-schema-bad-type", "tool-output-schema-bad-type", "tool-schema-bad-type",
		"tool-schema-boundary-below-anyof", "tool-schema-boundary-empty", "tool-schema-boundary-on-integer",
		"tool-schema-look-ahead", "tool-schema-negative-bound", "tool-schema-object-without-members",
		"tool-schema-old-dialect", "tool-schema-pattern-unclosed", "tool-schema-reference-cycle",
		"tool-schema-reference-file", "tool-schema-reference-remote", "tool-schema-reference-unresolved",
		"tool-schema-required-string", "tool-schema-unknown-format", "tool-schema-unknown-keyword",
	},
	"it depends on the type of the tool or of the server: the registry decides, which is the one place that says so": {
		"servers-command-of-oxp", "servers-credential-of-command", "servers-env-with-url",
		"servers-input-requests-of-oxp", "servers-max-age-of-mcp", "servers-start-timeout-of-url", "tool-run-command-of-http",
		"tool-run-input-requests-of-http", "tool-run-max-age-of-mcp", "tool-run-oxp-version",
		"tool-run-parameter-header", "tool-run-parameter-unplaced", "tool-run-parameters-without-method",
		"tool-run-tool-missing", "tool-run-tool-of-http", "tool-run-url-braces", "tool-run-url-missing",
		"tool-run-url-of-client", "tool-credential-header", "tool-credential-header-of-mcp", "tool-credential-parameter",
		"tool-credential-oauth-audience-twice", "tool-credential-oauth-http", "tool-credential-oauth-parameter",
		"tool-credential-oauth-timeout", "tool-credential-oauth-user-info", "tool-credential-exchange-of-mcp", "tool-credential-exchange-parameter",
	},
}

// TestSchemasRefuseFaults: every faulty file is refused by its schema, but for those of
// beyondSchemas, of which none is.
func TestSchemasRefuseFaults(t *testing.T) {
	schemas := compiledSchemas(t)
	beyond := map[string]bool{}
	for _, names := range beyondSchemas {
		for _, name := range names {
			if beyond[name] {
				t.Errorf("%s is on the list twice", name)
			}
			beyond[name] = true
		}
	}
	cases, err := filepath.Glob(filepath.Join("testdata", "faulty", "*.txtar"))
	if err != nil || len(cases) < configtest.LeastCases {
		t.Fatalf("found %d cases, %v; expected at least %d", len(cases), err, configtest.LeastCases)
	}
	for _, file := range cases {
		a, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(string(a.Comment), "policy.csv") {
			continue // a policy is CSV, and has no schema
		}
		name := strings.TrimSuffix(filepath.Base(file), ".txtar")
		refused := false
		for file, f := range configtest.Override(t, a) {
			if ext := path.Ext(file); f.Directory || ext != ".yaml" && ext != ".json" {
				continue
			}
			value, err := editorValue([]byte(f.Data))
			if err != nil {
				refused = true // an editor shows that it is no YAML
				continue
			}
			kind := kindOf(file, value)
			if file == "t.yaml" {
				kind = "policy-tests"
			}
			refused = refused || kind != "" && schemas[kind].Validate(value) != nil
		}
		switch listed := beyond[name]; {
		case !refused && !listed:
			t.Errorf("%s: no schema refuses it: %s", name, a.Comment)
		case refused && listed:
			t.Errorf("%s is refused by a schema: take it off the list", name)
		}
		delete(beyond, name)
	}
	for name := range beyond {
		t.Errorf("%s is on the list, and there is no such case", name)
	}
}

// beyondUpstreams is beyondSchemas for testdata/upstreams.
var beyondUpstreams = map[string][]string{
	"it compares places of the file with one another": {
		"credential-and-key", "messages-not-spoken", "responses-not-spoken", "text-beside-messages", "model-twice", "name-twice",
	},
	"it compares what a text means with a bound or a form that no pattern says": {
		"run-timeout-too-long", "timeouts-connect-too-long", "url-messages", "url-whole", "url-plain-http", "credential-header-host",
	},
}

// TestSchemaRefusesFaultyUpstreams is TestSchemasRefuseFaults for upstreams files.
func TestSchemaRefusesFaultyUpstreams(t *testing.T) {
	schema := compiledSchemas(t)["upstreams"]
	var beyond []string
	for _, names := range beyondUpstreams {
		beyond = append(beyond, names...)
	}
	cases, err := filepath.Glob(filepath.Join("testdata", "upstreams", "*.txtar"))
	if err != nil || len(cases) < 40 {
		t.Fatalf("found %d cases, %v; expected at least 40", len(cases), err)
	}
	seen := 0
	for _, file := range cases {
		a, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		value, err := editorValue(a.Files[0].Data)
		refused := err != nil || schema.Validate(value) != nil
		name := strings.TrimSuffix(filepath.Base(file), ".txtar")
		listed := slices.Contains(beyond, name)
		if listed {
			seen++
		}
		switch {
		case !refused && !listed:
			t.Errorf("%s: the schema does not refuse it: %s", name, a.Comment)
		case refused && listed:
			t.Errorf("%s is refused by the schema: take it off the list", name)
		}
	}
	if seen != len(beyond) {
		t.Errorf("found %d of the %d cases of the list", seen, len(beyond))
	}
}
