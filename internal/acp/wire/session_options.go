package wire

import "encoding/json"

// ModeState is the modes of a session, and which of them holds.
type ModeState struct {
	CurrentModeID  string     `json:"currentModeId" wire:"required id"`
	AvailableModes List[Mode] `json:"availableModes" wire:"required"`
	Meta           Meta       `json:"_meta,omitempty"`
}

// Mode is one mode of an agent.
type Mode struct {
	ID          string `json:"id" wire:"required id"`
	Name        string `json:"name" wire:"required"`
	Description string `json:"description,omitempty"`
	Meta        Meta   `json:"_meta,omitempty"`
}

// SetModeRequest is the params of session/set_mode.
type SetModeRequest struct {
	SessionID string `json:"sessionId" wire:"required id"`
	ModeID    string `json:"modeId" wire:"required id"`
	Meta      Meta   `json:"_meta,omitempty"`
}

// ConfigOption is an option of a session: a choice or, with Boolean, a switch.
type ConfigOption struct {
	ID          string `json:"id" wire:"required id"`
	Name        string `json:"name" wire:"required"`
	Description string `json:"description,omitempty"`
	Category    string `json:"category,omitempty"` // "mode", "model", …: the protocol leaves it open
	Meta        Meta   `json:"_meta,omitempty"`
	Boolean     bool   `json:"-"` // On is its value
	On          bool   `json:"-"`
	Current     string `json:"-"` // the value of a choice
	// Either Groups or, where it is nil, Options are the values of a choice.
	Options []ConfigValue `json:"-"`
	Groups  []ConfigGroup `json:"-"`
}

// ConfigValue is one value of a choice.
type ConfigValue struct {
	Value       string `json:"value" wire:"required id"`
	Name        string `json:"name" wire:"required"`
	Description string `json:"description,omitempty"`
	Meta        Meta   `json:"_meta,omitempty"`
}

// ConfigGroup is a group of values.
type ConfigGroup struct {
	Group   string            `json:"group" wire:"required id"`
	Name    string            `json:"name" wire:"required"`
	Options List[ConfigValue] `json:"options" wire:"required"`
	Meta    Meta              `json:"_meta,omitempty"`
}

// SetConfigOptionRequest is the params of session/set_config_option. A switch has the type boolean, and a
// choice has none.
type SetConfigOptionRequest struct {
	SessionID string `json:"sessionId" wire:"required id"`
	ConfigID  string `json:"configId" wire:"required id"`
	Meta      Meta   `json:"_meta,omitempty"`
	Boolean   bool   `json:"-"` // On is the value, else Value
	On        bool   `json:"-"`
	Value     string `json:"-"`
}

// SetConfigOptionResponse is its result: all options.
type SetConfigOptionResponse struct {
	ConfigOptions List[ConfigOption] `json:"configOptions" wire:"required"`
	Meta          Meta               `json:"_meta,omitempty"`
}

func (c *ConfigOption) read(o *object) {
	var kind string
	o.fields(c)
	o.take("type", &kind, `wire:"required" enum:"select boolean"`)
	if c.Boolean = kind == "boolean"; c.Boolean {
		o.take("currentValue", &c.On, `wire:"required"`)
		return
	}
	o.take("currentValue", &c.Current, `wire:"required id"`)
	var values []struct {
		Group json.RawMessage `json:"group"`
	}
	o.take("options", &values, `wire:"required"`)
	if len(values) > 0 && values[0].Group != nil {
		o.take("options", &c.Groups, `wire:"required"`)
	} else {
		o.take("options", &c.Options, `wire:"required"`)
	}
}

// MarshalJSON writes the members that the type has.
func (c ConfigOption) MarshalJSON() ([]byte, error) {
	type common ConfigOption
	option := struct {
		common
		Type         string `json:"type"`
		CurrentValue any    `json:"currentValue"`
		Options      any    `json:"options,omitempty"`
	}{common(c), "select", c.Current, List[ConfigValue](c.Options)}
	switch {
	case c.Boolean:
		option.Type, option.CurrentValue, option.Options = "boolean", c.On, nil
	case c.Groups != nil:
		option.Options = c.Groups
	}
	return json.Marshal(option)
}

func (r *SetConfigOptionRequest) read(o *object) {
	var kind string
	o.fields(r)
	o.take("type", &kind, `wire:"notnull" enum:"boolean"`)
	if r.Boolean = kind == "boolean"; r.Boolean {
		o.take("value", &r.On, `wire:"required"`)
	} else {
		o.take("value", &r.Value, `wire:"required id"`)
	}
}

// MarshalJSON writes the members that the type has.
func (r SetConfigOptionRequest) MarshalJSON() ([]byte, error) {
	type common SetConfigOptionRequest
	message := struct {
		common
		Type  string `json:"type,omitempty"`
		Value any    `json:"value"`
	}{common(r), "", r.Value}
	if r.Boolean {
		message.Type, message.Value = "boolean", r.On
	}
	return json.Marshal(message)
}
