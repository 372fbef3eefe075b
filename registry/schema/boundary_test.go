package schema

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
)

const boundedSchema = `{"type":"object","properties":{
	"path":{"type":"string","x-boundary":"path"},
	"maybe":{"type":["string","null"],"x-boundary":"host"},
	"list":{"type":["array","null"],"items":{"type":"string"},"x-boundary":"url"},
	"each":{"type":"array","items":{"type":"string","x-boundary":"customer"}},
	"pair":{"type":"array","prefixItems":[{"type":"string"},{"type":"string","x-boundary":"project"}],"items":false},
	"deep":{"type":"object","properties":{"rows":{"type":"array","items":{"type":"object","properties":{"p":{"$ref":"#/$defs/path"},"q":{"type":"string"}}}}}},
	"map":{"type":"object","additionalProperties":{"type":"string","x-boundary":"path"}},
	"pat":{"type":"object","patternProperties":{"^p":{"type":"string","x-boundary":"path"}},"additionalProperties":{"type":"string"}},
	"tree":{"$ref":"#/$defs/node"},
	"free":{"type":"string"}},
	"$defs":{"path":{"type":"string","x-boundary":"path"},"node":{"type":"object","properties":{"at":{"$ref":"#/$defs/path"},"kids":{"type":"array","items":{"$ref":"#/$defs/node"}}}}}}`

func TestBoundaries(t *testing.T) {
	e := compiled(t, boundedSchema)
	for raw, want := range map[string][]string{
		`{}`:                         nil,
		`{"free":"x"}`:               nil,
		`{"path":"/x"}`:              {"path [path] /x"},
		`{"maybe":null,"list":null}`: nil,
		`{"maybe":"h"}`:              {"host [maybe] h"},
		`{"list":["u","v"]}`:         {"url [list 0] u", "url [list 1] v"},
		`{"each":["c-1"]}`:           {"customer [each 0] c-1"},
		`{"pair":["a","b"]}`:         {"project [pair 1] b"},
		`{"deep":{"rows":[{"q":"n"},{"p":"y"}]}}`:                     {"path [deep rows 1 p] y"},
		`{"map":{"b":"2","a":"1"}}`:                                   {"path [map a] 1", "path [map b] 2"},
		`{"pat":{"p":"1","q":"2"}}`:                                   {"path [pat p] 1"},
		`{"tree":{"at":"1","kids":[{"at":"2","kids":[{"at":"3"}]}]}}`: {"path [tree at] 1", "path [tree kids 0 at] 2", "path [tree kids 0 kids 0 at] 3"},
		`{"path":""}`: {"path [path] "},
	} {
		args := arguments(t, raw)
		if found := e.Evaluate("web.search", args); found != nil {
			t.Fatalf("%s: %v", raw, found)
		}
		var got []string
		for _, b := range e.Boundaries(args) {
			got = append(got, fmt.Sprint(b.Kind, " ", b.Path, " ", b.Value))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: found %q; expected %q", raw, got, want)
		}
	}
	if found := compiled(t, `{"type":"object","properties":{"a":{"type":"string"}}}`).Boundaries(map[string]any{"a": "x"}); found != nil {
		t.Errorf("found %v", found)
	}
}

// TestBoundariesOfOthers: where the tool is open, a boundary for other members
// of the root is met.
func TestBoundariesOfOthers(t *testing.T) {
	for schema, want := range map[string][]string{
		`{"type":"object","additionalProperties":{"type":"string","x-boundary":"path"}}`:                                                                                      {"path [b] /x"},
		`{"$ref":"#/$defs/r","$defs":{"r":{"type":"object","additionalProperties":{"type":"string","x-boundary":"path"}}}}`:                                                   {"path [b] /x"},
		`{"type":"object","allOf":[{"properties":{"b":{"type":"string"}}}],"additionalProperties":{"type":"string","x-boundary":"path"}}`:                                     {"path [b] /x"},
		`{"type":"object","allOf":[{"properties":{"c":{"type":"string"}}}],"unevaluatedProperties":{"$ref":"#/$defs/p"},"$defs":{"p":{"type":"string","x-boundary":"path"}}}`: {"path [b] /x"},
	} {
		e, err := compile(schema, Options{Open: true})
		if err != nil {
			t.Fatal(err)
		}
		args := map[string]any{"b": "/x"}
		if found := e.Evaluate("web.search", args); found != nil {
			t.Errorf("%s: %v", schema, found)
		}
		var got []string
		for _, b := range e.Boundaries(args) {
			got = append(got, fmt.Sprint(b.Kind, " ", b.Path, " ", b.Value))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: found %q; expected %q", schema, got, want)
		}
	}
}

func TestSecret(t *testing.T) {
	e := compiled(t, `{"type":"object","properties":{
		"key":{"type":"string","x-secret":true},
		"plain":{"type":"string","x-secret":false},
		"card":{"type":"object","x-secret":true,"properties":{"no":{"type":"string"}}},
		"logins":{"type":"array","items":{"type":"object","properties":{"user":{"type":"string"},"password":{"$ref":"#/$defs/s"}}}},
		"either":{"oneOf":[{"type":"string"},{"type":"object","required":["token"],"properties":{"token":{"type":"string","x-secret":true}}}]},
		"map":{"type":"object","additionalProperties":{"type":"string","x-secret":true}},
		"0":{"type":"string","x-secret":true}},
		"$defs":{"s":{"type":"string","x-secret":true}}}`)
	for path, want := range map[string]bool{
		`["key"]`: true, `["plain"]`: false, `[]`: false, `["none"]`: false, `["card"]`: true, `["card","no"]`: true, `["card","no","deeper"]`: true,
		`["logins"]`: false, `["logins","0"]`: false, `["logins","7","user"]`: false, `["logins","7","password"]`: true,
		`["either"]`: false, `["either","token"]`: true, `["map","x"]`: true, `["map"]`: false, `["0"]`: true, `["1"]`: false,
	} {
		var p []string
		if err := json.Unmarshal([]byte(path), &p); err != nil {
			t.Fatal(err)
		}
		if got := e.Secret(p); got != want {
			t.Errorf("%s: found %v", path, got)
		}
	}
	for schema, paths := range map[string]map[string]bool{
		`{"type":"object","properties":{"a":{"type":"string"}},"patternProperties":{"^p":{"type":"string"}},"additionalProperties":{"type":"string","x-secret":true}}`:                        {"a": false, "p1": false, "b": true},
		`{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":{"type":"array","items":{"$ref":"#/$defs/s"}},"$defs":{"s":{"type":"string","x-secret":true}}}`:         {"a": false, "b": true},
		`{"type":"object","allOf":[{"properties":{"a":{"type":"string"}}}],"additionalProperties":{"type":"string","x-secret":true}}`:                                                         {"a": true, "b": true},
		`{"$ref":"#/$defs/r","$defs":{"r":{"type":"object","properties":{"a":{"type":"string"}},"unevaluatedProperties":{"type":"string","x-secret":true}}}}`:                                 {"a": false, "b": true},
		`{"type":"object","properties":{"a":{"type":"string"}},"anyOf":[{"properties":{"c":{"type":"string"}},"additionalProperties":{"type":"string","x-secret":true}},{"required":["a"]}]}`: {"a": true, "b": true, "c": false},
		`{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":{"type":"string"},"$defs":{"s":{"type":"string","x-secret":true}}}`:                                     {"a": false, "b": false},
	} {
		for name, want := range paths {
			if got := compiled(t, schema).Secret([]string{name}); got != want {
				t.Errorf("%s: %s: found %v", schema, name, got)
			}
		}
	}
	if compiled(t, `{"type":"object","properties":{"a":{"type":"string"}}}`).Secret([]string{"a"}) {
		t.Error("a schema without secrets has one")
	}
}
