package acpproxy

import (
	"slices"
	"strings"
	"unicode"

	"github.com/callgate/callgate/internal/acp/wire"
)

// modeRules say which modes of an agent may be chosen. A mode in which the agent asks nobody
// would take every decision away from the gateway.
type modeRules struct {
	// allowed are the ids that the operator permits; where it has any, no other is.
	allowed []string
}

// unaskedWords stand in ids or names of modes that ask nobody, without what is between letters:
// bypassPermissions, yolo, full-access, dontAsk, auto-edit, acceptEdits and their like.
var unaskedWords = []string{
	"bypass", "yolo", "fullaccess", "fullauto", "unrestricted", "dontask", "donotask", "neverask", "noask", "noprompt",
	"noapproval", "noconfirm", "nopermission", "autoedit", "autoaccept", "autoapprov", "autoallow", "autoconfirm", "autorun",
	"autopilot", "acceptedit", "acceptall", "allowall", "approveall", "trustall", "dangerous", "skippermission", "skipapproval",
	"skipconfirm", "unattended", "unsafe", "godmode",
}

// unaskedModes are whole ids and names of such modes, where they are those of a mode. As the name
// of a model they say nothing.
var unaskedModes = []string{"auto", "never", "allow", "trust", "trusted", "always", "edits"}

// aboutModels are the categories of options that are about models.
var aboutModels = []string{"model", "model_config", "thought_level"}

// refuses reports whether a mode must not be chosen.
func (r modeRules) refuses(id, name string) bool {
	if len(r.allowed) > 0 {
		return !slices.Contains(r.allowed, id)
	}
	return asksNobody(id) || asksNobody(name)
}

// refusesValue reports whether the value of an option of a category must not be chosen. A list of
// the operator is about modes; the words are about every option, since an agent may name the
// category as it likes.
func (r modeRules) refusesValue(category, id, name string) bool {
	if slices.Contains(aboutModels, category) {
		return namesUnasked(id) || namesUnasked(name)
	}
	if category == "mode" {
		return r.refuses(id, name)
	}
	return asksNobody(id) || asksNobody(name)
}

// refusesChoice reports whether no value of a choice may be chosen, since its own id or name is that
// of a mode that asks nobody: its values may be on and off.
func (r modeRules) refusesChoice(o wire.ConfigOption) bool {
	return !slices.Contains(aboutModels, o.Category) && (namesUnasked(o.ID) || namesUnasked(o.Name))
}

// isOff reports whether a value is that of a choice that is off.
func isOff(value string) bool {
	return slices.Contains([]string{"off", "no", "false", "disabled", "none"}, letters(value))
}

// refusesSwitch reports whether an option that is on or off must not be on.
func (r modeRules) refusesSwitch(id, name string) bool { return asksNobody(id) || asksNobody(name) }

func asksNobody(text string) bool {
	return namesUnasked(text) || slices.Contains(unaskedModes, letters(text))
}

func namesUnasked(text string) bool {
	plain := letters(text)
	return slices.ContainsFunc(unaskedWords, func(word string) bool { return strings.Contains(plain, word) })
}

// letters are the letters of a text in lower case.
func letters(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsLetter(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, text)
}
