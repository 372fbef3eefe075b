package agenthooks

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

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

// read reads a hook's input. Of one that is not valid, event is what it says it is, if that is known.
func read(body []byte) (h hook, err error) {
	texts := map[string]*string{
		"hook_event_name": &h.event, "session_id": &h.session, "agent_id": &h.agentID, "tool_use_id": &h.toolUseID, "cwd": &h.cwd,
		"tool_name": &h.tool,
		"prompt_id": &h.prompt, "turn_id": &h.prompt, "permission_mode": &h.permissionMode,
	}
	err = parser.ReadObject(body, maxDepth, func(name string, first byte) error {
		if texts[name] != nil && first != '"' {
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
	if !slices.Contains([]string{preToolUse, permissionRequest, postToolUse, postToolUseFailure, preSkillShellCommand}, h.event) {
		if err == nil {
			err = fmt.Errorf(`"hook_event_name" is %s; expected PreToolUse, PermissionRequest, PostToolUse, PostToolUseFailure or PreSkillShellCommand, which are those to be sent here`, parser.Quote(h.event))
		}
		h.event = ""
		return h, err
	}
	switch {
	case err != nil:
	case h.session == "":
		err = errors.New(`"session_id" is missing`)
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

const idLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_."
