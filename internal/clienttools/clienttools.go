// Package clienttools has the tools that an API defines and the application runs: a request
// names them by their type alone, without a schema. Each has the name and the schema of
// arguments that a registry holds it under.
//
// # Anthropic Messages (AM-13)
//
// bash_*, text_editor_*, memory_* and computer_* have the fixed name that their calls have. A toolset
// (computer_toolset_*, browser_toolset_*) is several tools: a call of its member left_click is that of
// the tool computer.left_click. The schemas are those of the API's reference and of the types of
// @anthropic-ai/sdk 1.12.0, and admit the members of every dated type of a tool.
//
// # OpenAI Responses (RS-12)
//
// shell, local_shell, apply_patch and computer. The arguments of a call are the object action or
// operation of its item (shell_call.action, local_shell_call.action, apply_patch_call.operation,
// computer_call.action), and of a computer_call with several actions {"actions": [...]}. A custom tool,
// whose input is a text, has the arguments {"input": TEXT}; the schema is Custom.
//
// The schemas declare each member at the root, without combinators, so that an operator can add
// x-boundary or a pattern to one of them. Other rules are left to conditions.
package clienttools

import (
	"encoding/json"
	"slices"
	"strings"
)

// Tool is a tool that an API defines.
type Tool struct {
	Name        string // in a registry
	Description string
	Schema      json.RawMessage // of the arguments
}

// Anthropic returns the tools of a type of Anthropic Messages, such as bash_20250124; none where the
// application does not run it, or it is not known.
func Anthropic(kind string) []Tool {
	family, date := kind, ""
	if at := strings.LastIndexByte(kind, '_'); at > 0 {
		family, date = kind[:at], kind[at+1:]
	}
	if len(date) != len("20250124") || strings.Trim(date, "0123456789") != "" {
		return nil
	}
	switch family {
	case "bash":
		return one("bash", "Runs a command in a shell that lasts.", bash)
	case "text_editor":
		if date < "20250429" {
			return one("str_replace_editor", textEditorDescription, textEditor)
		}
		return one("str_replace_based_edit_tool", textEditorDescription, textEditor)
	case "memory":
		return one("memory", "Views, creates and edits files below /memories.", memory)
	case "computer":
		return one("computer", "Acts on a screen with mouse and keyboard, and shows it.", computer)
	case "computer_toolset":
		return members("computer", computerMembers)
	case "browser_toolset":
		return members("browser", browserMembers)
	}
	return nil
}

// Responses returns the tool of a type of OpenAI Responses, such as local_shell; false where the
// application does not run it, or it is not known.
func Responses(kind string) (Tool, bool) {
	switch kind {
	case "shell":
		return Tool{"shell", "Runs commands in a shell.", shell}, true
	case "local_shell":
		return Tool{"local_shell", "Runs a program with arguments.", localShell}, true
	case "apply_patch":
		return Tool{"apply_patch", "Creates, updates or deletes a file by a diff.", applyPatch}, true
	case "computer", "computer_use_preview":
		return Tool{"computer", "Acts on a screen with mouse and keyboard, and shows it.", computerActions}, true
	}
	return Tool{}, false
}

const textEditorDescription = "Views, creates and edits text files."

func one(name, description string, schema json.RawMessage) []Tool {
	return []Tool{{name, description, schema}}
}

// members are the tools of a toolset, by name.
func members(toolset string, schemas map[string]json.RawMessage) []Tool {
	var all []Tool
	for name, schema := range schemas {
		all = append(all, Tool{toolset + "." + name, "The action " + name + " of the toolset " + toolset + ".", schema})
	}
	slices.SortFunc(all, func(a, b Tool) int { return strings.Compare(a.Name, b.Name) })
	return all
}
