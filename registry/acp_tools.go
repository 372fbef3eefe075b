package registry

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/callgate/callgate/parser"
)

// RunACP is the type of tools that the client of an ACP session runs.
const RunACP = "acp"

// delegatedArguments are the arguments that a method of an ACP client takes; nil for a name that is
// no such method.
func delegatedArguments(method string) []string {
	switch method {
	case "fs/read_text_file":
		return []string{"limit", "line", "path"}
	case "fs/write_text_file":
		return []string{"content", "path"}
	case "terminal/create":
		return []string{"args", "command", "cwd", "env", "outputByteLimit"}
	}
	return nil
}

// checkDelegated reports the faults of a tool of the type acp: its method must be one that a
// client can run, and each argument that the schema declares one that the method takes, since
// the client would never get another.
func checkDelegated(t Tool, report func(string, ...string)) {
	if t.Run.Type != RunACP {
		return
	}
	known := delegatedArguments(t.Run.Tool)
	if known == nil {
		found := "found nothing"
		if t.Run.Tool != "" {
			found = "found " + parser.Quote(t.Run.Tool)
		}
		report(found+"; expected the method of the client: fs/read_text_file, fs/write_text_file or terminal/create", "run", "tool")
		return
	}
	if t.Open {
		report("found open: true; expected none with the type acp: the method takes "+strings.Join(known, ", ")+" and nothing else", "open")
	}
	// A schema that cannot be read declares nothing; its faults are reported where it is compiled.
	var root, properties map[string]json.RawMessage
	_ = json.Unmarshal(t.InputSchema, &root)
	_ = json.Unmarshal(root["properties"], &properties)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if !slices.Contains(known, name) {
			report(fmt.Sprintf("found the argument %s, which %s does not take; expected %s", parser.Quote(name), t.Run.Tool,
				strings.Join(known, ", ")), "input_schema")
		}
	}
}
