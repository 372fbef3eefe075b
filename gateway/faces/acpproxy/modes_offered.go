package acpproxy

import (
	"slices"

	"github.com/callgate/callgate/internal/acp/wire"
)

// offeredModes are the modes and options of a session that the editor was shown.
type offeredModes struct {
	modes   []string
	options []wire.ConfigOption
}

// filterModes returns the modes that the editor may see. The mode that holds must be one of them.
func (r modeRules) filterModes(m *wire.ModeState) (filtered *wire.ModeState, asks bool) {
	if m == nil {
		return nil, true
	}
	kept := *m
	kept.AvailableModes = slices.DeleteFunc(slices.Clone(m.AvailableModes),
		func(mode wire.Mode) bool { return r.refuses(mode.ID, mode.Name) })
	is := func(mode wire.Mode) bool { return mode.ID == m.CurrentModeID }
	if slices.ContainsFunc(m.AvailableModes, is) {
		return &kept, slices.ContainsFunc(kept.AvailableModes, is)
	}
	return &kept, !r.refuses(m.CurrentModeID, "")
}

// filterOptions returns the options that the editor may see, without the values that ask nobody.
// An option that is set to such a value does not ask.
func (r modeRules) filterOptions(options []wire.ConfigOption) (filtered []wire.ConfigOption, asks bool) {
	if asks = true; options != nil {
		filtered = []wire.ConfigOption{}
	}
	for _, o := range options {
		all := values(o)
		if o.Boolean {
			if !r.refusesSwitch(o.ID, o.Name) {
				filtered = append(filtered, o)
			} else if o.On {
				asks = false
			}
			continue
		}
		if r.refusesChoice(o) {
			asks = asks && isOff(o.Current)
			continue
		}
		refused := func(v wire.ConfigValue) bool { return r.refusesValue(o.Category, v.Value, v.Name) }
		if o.Groups != nil {
			o.Groups = slices.Clone(o.Groups)
			for i := range o.Groups {
				o.Groups[i].Options = slices.DeleteFunc(slices.Clone(o.Groups[i].Options), refused)
			}
		} else {
			o.Options = slices.DeleteFunc(slices.Clone(o.Options), refused)
		}
		known := slices.Contains(all, o.Current)
		if known && !slices.Contains(values(o), o.Current) || !known && r.refusesValue(o.Category, o.Current, "") {
			asks = false
		}
		filtered = append(filtered, o)
	}
	return filtered, asks
}

// values are the values of a choice.
func values(o wire.ConfigOption) (all []string) {
	for _, v := range o.Options {
		all = append(all, v.Value)
	}
	for _, g := range o.Groups {
		for _, v := range g.Options {
			all = append(all, v.Value)
		}
	}
	return all
}

// hasMode reports whether a mode can be chosen: it was shown.
func (o offeredModes) hasMode(id string) bool { return slices.Contains(o.modes, id) }

// hasValue reports whether an option can be set so: option and value were shown.
func (o offeredModes) hasValue(r wire.SetConfigOptionRequest) bool {
	return slices.ContainsFunc(o.options, func(c wire.ConfigOption) bool {
		return c.ID == r.ConfigID && c.Boolean == r.Boolean && (r.Boolean || slices.Contains(values(c), r.Value))
	})
}
