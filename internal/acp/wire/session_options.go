package wire

import (
	"encoding/json"
)

// ModeState is the modes of a session, and which of them holds.
type ModeState struct {
	CurrentModeID  string     `json:"currentModeId"`
	AvailableModes List[Mode] `json:"availableModes"`
	Meta           Meta       `json:"_meta,omitempty"`
}

// Mode is one mode of an agent.
type Mode struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Meta        Meta   `json:"_meta,omitempty"`
}

// SetModeRequest is the params of session/set_mode.
type SetModeRequest struct {
	SessionID string `json:"sessionId"`
	ModeID    string `json:"modeId"`
	Meta      Meta   `json:"_meta,omitempty"`
}

// ConfigOption is an option of a session: a choice or, with Boolean, a switch.
type ConfigOption struct {
	ID          string
	Name        string
	Description string
	Category    string // "mode", "model", …: the protocol leaves it open
	Boolean     bool   // On is its value
	On          bool
	Current     string // the value of a choice
	// Either Groups or, where it is nil, Options are the values of a choice.
	Options []ConfigValue
	Groups  []ConfigGroup
	Meta    Meta
}

// ConfigValue is one value of a choice.
type ConfigValue struct {
	Value       string `json:"value"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Meta        Meta   `json:"_meta,omitempty"`
}

// ConfigGroup is a group of values.
type ConfigGroup struct {
	Group   string            `json:"group"`
	Name    string            `json:"name"`
	Options List[ConfigValue] `json:"options"`
	Meta    Meta              `json:"_meta,omitempty"`
}

// SetConfigOptionRequest is the params of session/set_config_option.
type SetConfigOptionRequest struct {
	SessionID string
	ConfigID  string
	Boolean   bool // On is the value, else Value
	On        bool
	Value     string
	Meta      Meta
}

// SetConfigOptionResponse is its result: all options.
type SetConfigOptionResponse struct {
	ConfigOptions List[ConfigOption] `json:"configOptions"`
	Meta          Meta               `json:"_meta,omitempty"`
}

func readModeState(o *object) ModeState {
	return ModeState{o.rID("currentModeId"), rObjects(o, "availableModes", func(o *object) Mode {
		return Mode{o.rID("id"), o.rText("name"), o.oText("description"), o.meta()}
	}), o.meta()}
}

// ReadSetModeRequest reads the params of session/set_mode.
func ReadSetModeRequest(raw json.RawMessage) (SetModeRequest, error) {
	return read(raw, drop, func(o *object) SetModeRequest {
		return SetModeRequest{o.rID("sessionId"), o.rID("modeId"), o.meta()}
	})
}

func readConfigOption(o *object) ConfigOption {
	c := ConfigOption{
		ID: o.rID("id"), Name: o.rText("name"), Description: o.oText("description"),
		Category: o.oText("category"), Meta: o.meta(),
	}
	c.Boolean = enum(o.at("type"), o.required("type"), "select", "boolean") == "boolean"
	if c.Boolean {
		c.On = o.at("currentValue").boolean(o.required("currentValue"))
		return c
	}
	c.Current = o.rID("currentValue")
	raw := o.required("options")
	grouped := false
	for _, first := range list(o.at("options"), raw, (*place).object) {
		grouped = first.has("group")
		break
	}
	if grouped {
		c.Groups = objects(o, "options", raw, func(o *object) ConfigGroup {
			return ConfigGroup{o.rID("group"), o.rText("name"), rObjects(o, "options", readConfigValue), o.meta()}
		})
	} else {
		c.Options = objects(o, "options", raw, readConfigValue)
	}
	return c
}

func readConfigValue(o *object) ConfigValue {
	return ConfigValue{o.rID("value"), o.rText("name"), o.oText("description"), o.meta()}
}

// MarshalJSON writes the members that the type has.
func (c ConfigOption) MarshalJSON() ([]byte, error) {
	type common struct {
		ID          string `json:"id"`
		Name        string `json:"name"`
		Description string `json:"description,omitempty"`
		Category    string `json:"category,omitempty"`
		Type        string `json:"type"`
		Meta        Meta   `json:"_meta,omitempty"`
	}
	head := common{c.ID, c.Name, c.Description, c.Category, "select", c.Meta}
	if c.Boolean {
		head.Type = "boolean"
		return json.Marshal(struct {
			common
			CurrentValue bool `json:"currentValue"`
		}{head, c.On})
	}
	var options any = List[ConfigValue](c.Options)
	if c.Groups != nil {
		options = c.Groups
	}
	return json.Marshal(struct {
		common
		CurrentValue string `json:"currentValue"`
		Options      any    `json:"options"`
	}{head, c.Current, options})
}

// ReadSetConfigOptionRequest reads the params of session/set_config_option. A switch has the type
// boolean, and a choice has none.
func ReadSetConfigOptionRequest(raw json.RawMessage) (SetConfigOptionRequest, error) {
	return read(raw, drop, func(o *object) SetConfigOptionRequest {
		r := SetConfigOptionRequest{SessionID: o.rID("sessionId"), ConfigID: o.rID("configId"), Meta: o.meta()}
		if raw := o.optional("type"); raw != nil {
			r.Boolean = enum(o.at("type"), raw, "boolean") == "boolean"
		}
		if r.Boolean {
			r.On = o.at("value").boolean(o.required("value"))
		} else {
			r.Value = o.rID("value")
		}
		return r
	})
}

// MarshalJSON writes the members that the type has.
func (r SetConfigOptionRequest) MarshalJSON() ([]byte, error) {
	message := struct {
		SessionID string `json:"sessionId"`
		ConfigID  string `json:"configId"`
		Type      string `json:"type,omitempty"`
		Value     any    `json:"value"`
		Meta      Meta   `json:"_meta,omitempty"`
	}{r.SessionID, r.ConfigID, "", r.Value, r.Meta}
	if r.Boolean {
		message.Type, message.Value = "boolean", r.On
	}
	return json.Marshal(message)
}

// ReadSetConfigOptionResponse reads the result of session/set_config_option.
func ReadSetConfigOptionResponse(raw json.RawMessage) (SetConfigOptionResponse, error) {
	return read(raw, drop, func(o *object) SetConfigOptionResponse {
		return SetConfigOptionResponse{rObjects(o, "configOptions", readConfigOption), o.meta()}
	})
}
