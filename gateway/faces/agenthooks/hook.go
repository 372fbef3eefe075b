package agenthooks

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/parser"
)

// The events that are answered.
const (
	preToolUse         = "PreToolUse"
	permissionRequest  = "PermissionRequest"
	postToolUse        = "PostToolUse"
	postToolUseFailure = "PostToolUseFailure"
	// preSkillShellCommand is of a command in the text of a skill, which Claude Code runs itself: no tool has run after it.
	preSkillShellCommand = "PreSkillShellCommand"
)

// events are they, those first by which a tool runs where the answer is about another event.
var events = []string{preToolUse, preSkillShellCommand, permissionRequest, postToolUse, postToolUseFailure}

const (
	maxDepth = 500 // beside the arguments, which the kernel bounds
	maxID    = 128 // in bytes
)

// hook is what an agent gives its hook. An agent's next version may add members, which are left alone.
type hook struct {
	event, session, agentID, toolUseID, cwd, tool string
	prompt, permissionMode                        string
	input                                         []byte // as it was sent
}

// read reads a hook's input, in which null stands for a member that is not there. Of one that is not valid, event is what it
// says it is, if that is known.
func read(body []byte) (h hook, err error) {
	texts := map[string]*string{
		"hook_event_name": &h.event, "session_id": &h.session, "agent_id": &h.agentID, "tool_use_id": &h.toolUseID, "cwd": &h.cwd,
		"tool_name": &h.tool,
		"prompt_id": &h.prompt, "turn_id": &h.prompt, "permission_mode": &h.permissionMode,
	}
	err = parser.ReadObject(body, maxDepth, func(name string, first byte) error {
		if texts[name] != nil && first != '"' && first != 'n' {
			return fmt.Errorf("%q is %s; expected a string", name, parser.TypeName(first))
		}
		return nil
	}, func(name string, value []byte) error {
		if into := texts[name]; into != nil {
			return json.Unmarshal(value, into)
		} else if name == "tool_input" {
			h.input = value
		}
		return nil
	})
	if err != nil {
		h.event = eventIn(body)
		return h, err
	}
	switch {
	case h.event == "":
		err = errors.New(`"hook_event_name" is missing`)
	case !slices.Contains(events, h.event):
		err = fmt.Errorf(`"hook_event_name" is %s; expected PreToolUse, PermissionRequest, PostToolUse, PostToolUseFailure or PreSkillShellCommand, which are those to be sent here`, parser.Quote(h.event))
		h.event = ""
	case h.session == "":
		err = errors.New(`"session_id" is missing`)
	case h.cwd == "":
		err = errors.New(`"cwd" is missing`)
	case h.tool == "":
		err = errors.New(`"tool_name" is missing`)
	case h.input == nil:
		err = errors.New(`"tool_input" is missing`)
	case !filepath.IsAbs(h.cwd):
		err = fmt.Errorf(`"cwd" is %s; expected an absolute path`, parser.Quote(h.cwd))
	}
	for _, id := range []struct{ name, value string }{{"session_id", h.session}, {"agent_id", h.agentID}, {"tool_use_id", h.toolUseID},
		{"prompt_id", h.prompt}, {"permission_mode", h.permissionMode}} {
		if err == nil && (len(id.value) > maxID || strings.Trim(id.value, idLetters) != "") {
			err = fmt.Errorf("%q is no id of at most %d letters, digits, hyphens, underscores and dots", id.name, maxID)
		}
	}
	return h, err
}

// eventIn is the first of events that a faulty input names, wherever the fault is; empty if it names none, which is answered by
// an error: a denial for another event would be none to agents, while an error makes a hook fail that is set up to block then.
func eventIn(faulty []byte) string {
	var named []string
	_ = rawjson.Each(faulty, func(name, value []byte) error { // what comes before a fault that it cannot skip is enough
		if text, ok := rawjson.Text(value); ok && string(name) == "hook_event_name" {
			named = append(named, string(text))
		}
		return nil
	})
	for _, event := range events {
		if slices.Contains(named, event) {
			return event
		}
	}
	return ""
}

const idLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_."
