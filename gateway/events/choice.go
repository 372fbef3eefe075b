package events

import (
	"slices"

	"github.com/callgate/callgate/wrapper"
)

const (
	// MaxPromptBytes, MaxChoices and MaxChoiceBytes bound what a tool asks a person, as it is
	// sent on.
	MaxPromptBytes = 4 << 10
	MaxChoices     = 32
	MaxChoiceBytes = 512
)

// Choice is what a tool asks a person while its call waits. No model reads it.
type Choice struct {
	ID      string   `json:"id"` // differs for each message of a tool that asks
	Prompt  string   `json:"prompt"`
	Choices []string `json:"choices"`
	Default int      `json:"default"` // index of the one that stands for a person who does not choose
}

// NewChoice returns a choice in whose texts nothing hides. It is false for one that cannot be
// shown: a text is empty or too long, two choices read the same, or the default is none of them.
func NewChoice(id, prompt string, choices []string, byDefault int) (Choice, bool) {
	c := Choice{ID: id, Prompt: wrapper.EscapeText(prompt), Default: byDefault}
	for _, text := range choices {
		c.Choices = append(c.Choices, wrapper.EscapeText(text))
	}
	return c, c.valid()
}

func (c Choice) valid() bool {
	if c.Prompt == "" || len(c.Prompt) > MaxPromptBytes || len(c.Choices) > MaxChoices || c.Default < 0 || c.Default >= len(c.Choices) {
		return false
	}
	for i, text := range c.Choices {
		if text == "" || len(text) > MaxChoiceBytes || slices.Contains(c.Choices[:i], text) {
			return false
		}
	}
	return true
}

// Edit returns the choice with its texts as edit returns them, whose error ends it.
func (c Choice) Edit(edit func(string) (string, error)) (Choice, bool, error) {
	prompt, err := edit(c.Prompt)
	if err != nil {
		return Choice{}, false, err
	}
	choices := make([]string, len(c.Choices))
	for i, text := range c.Choices {
		if choices[i], err = edit(text); err != nil {
			return Choice{}, false, err
		}
	}
	edited, ok := NewChoice(c.ID, prompt, choices, c.Default)
	return edited, ok, nil
}
