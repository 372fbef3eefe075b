package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/callgate/callgate/internal/cli"
)

// shownText is a text from outside without anything that a terminal would obey.
func shownText(s string) string {
	line, err := cli.JSONLine(s)
	if err != nil {
		return "?"
	}
	return strings.TrimSuffix(strings.TrimPrefix(strings.TrimSuffix(string(line), "\n"), `"`), `"`)
}

// shownValue is a JSON value for people: texts without quotes, lists of texts with commas,
// anything else as indented JSON. Its numbers and members stay as they were written.
func shownValue(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return shownText(text)
	}
	var list []string
	if json.Unmarshal(raw, &list) == nil {
		for i := range list {
			list[i] = shownText(list[i])
		}
		return strings.Join(list, ", ")
	}
	line, err := cli.JSONLine(raw)
	if err != nil {
		return "?"
	}
	var b bytes.Buffer
	if json.Indent(&b, bytes.TrimSpace(line), strings.Repeat(" ", detailIndent), "  ") != nil {
		return "?"
	}
	return b.String()
}

// detailIndent is the column at which values are shown.
const detailIndent = 14

// writeDetails shows the members of an object, those of first before the others.
func writeDetails(w io.Writer, object map[string]json.RawMessage, first ...string) {
	rest := slices.Sorted(maps.Keys(object))
	show := func(name string) {
		raw, there := object[name]
		if s := string(raw); !there || s == "null" || s == `""` || s == "[]" || s == "{}" {
			return
		}
		fmt.Fprintf(w, "%-*s%s\n", detailIndent, strings.ReplaceAll(shownText(name), "_", " "), shownValue(raw))
	}
	for _, name := range first {
		show(name)
	}
	for _, name := range rest {
		if !slices.Contains(first, name) {
			show(name)
		}
	}
}
