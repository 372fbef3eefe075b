package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/callgate/callgate/configs"
)

// secretPlaces are the places of a configuration where a secret can stand, each with the canaries that
// TestSecretsStaySecret plants there. A place that a schema has and this table does not fails the test.
var secretPlaces = map[string][]string{
	"callgate /audit/otlp/headers/*":                  {"audit-header"},
	"callgate /audit/sign_key":                        {"sign-key"},
	"callgate /callbacks/keys":                        {"callback-keys"},
	"callgate /redis/password":                        {"redis-password"},
	"callgate /redis/sentinel/password":               {"sentinel-password"},
	"callgate /redis/url":                             {"redis-url"},
	"callgate /telemetry/traces/headers/*":            {"trace-header"},
	"tools /tools/*/run/credential":                   {"tool-bearer"},
	"tools /tools/*/run/credential/value":             {"tool-header", "tool-command"},
	"tools /tools/*/run/credential/user":              {"tool-user"},
	"tools /tools/*/run/credential/password":          {"tool-password"},
	"tools /tools/*/run/credential/client_secret":     {"tool-client"},
	"approvals /notify/key":                           {"notify-key"},
	"approvals /notify/previous_key":                  {"notify-previous"},
	"hooks /hooks/*/headers/*":                        {"hook-header"},
	"hooks /hooks/*/key":                              {"hook-key"},
	"upstreams /upstreams/*/key":                      {"upstream-key"},
	"upstreams /upstreams/*/credential":               {"upstream-bearer"},
	"upstreams /upstreams/*/credential/value":         {"upstream-header"},
	"upstreams /upstreams/*/credential/user":          {"upstream-user"},
	"upstreams /upstreams/*/credential/password":      {"upstream-password"},
	"upstreams /upstreams/*/credential/client_secret": {"upstream-client"},
	"servers /servers/*/credential":                   {"server-bearer"},
	"servers /servers/*/credential/value":             {"server-header"},
	"servers /servers/*/credential/user":              {"server-user"},
	"servers /servers/*/credential/password":          {"server-password"},
	"servers /servers/*/credential/client_secret":     {"server-client"},
}

// secretsOfSchemas lists the places that the schemas of the files have for secrets.
func secretsOfSchemas(t *testing.T) (places []string) {
	t.Helper()
	for _, kind := range configs.FileKinds() {
		text, err := configs.Schema(kind.Name)
		if err != nil {
			t.Fatal(err)
		}
		var root map[string]any
		if err := json.Unmarshal(text, &root); err != nil {
			t.Fatal(err)
		}
		var walk func(at string, schema map[string]any)
		walk = func(at string, schema map[string]any) {
			if pattern, _ := schema["pattern"].(string); strings.Contains(pattern, "(env|file):") {
				places = append(places, kind.Name+" "+at)
			}
			properties, _ := schema["properties"].(map[string]any)
			for name, value := range properties {
				walk(at+"/"+name, value.(map[string]any))
			}
			for _, key := range []string{"items", "additionalProperties"} {
				if value, ok := schema[key].(map[string]any); ok {
					walk(at+"/*", value)
				}
			}
			for _, key := range []string{"anyOf", "oneOf", "allOf"} {
				list, _ := schema[key].([]any)
				for _, value := range list {
					walk(at, value.(map[string]any))
				}
			}
		}
		walk("", root)
	}
	return places
}
