package app

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/configs/reload"
	"github.com/callgate/callgate/gateway/faces/admin"
	"github.com/callgate/callgate/telemetry"
)

// observer counts for the metrics, and for the pages of operators.
type observer struct {
	*telemetry.Metrics
	recent *admin.Recent
}

// Ended implements gateway.Observer.
func (o observer) Ended(outcome string, took time.Duration, agent, tool string) {
	o.Metrics.Ended(outcome, took, agent, tool)
	o.recent.Ran(took)
}

// noteReload notes a change of the files.
func noteReload(changes *admin.Changes, e *reload.Event) {
	text := fmt.Sprintf("configuration %.12s", e.Digest)
	switch e.Kind {
	case reload.Reloaded:
		names := []string{}
		for _, file := range e.Files {
			names = append(names, filepath.Base(file))
		}
		text += " is in force: " + listed(names)
	case reload.Recovered:
		text += " is again what the files say"
	case reload.Failed:
		if len(e.Faults) > 0 {
			text = fmt.Sprintf("the files do not load, %s stays in force: %s", text, e.Faults[0].Error())
		}
	case reload.RestartRequired:
		text = "a restart is needed for " + listed(e.Keys)
	}
	changes.Note(time.Now(), string(e.Kind), text)
}

// noteTools notes the tools that a configuration has and the one before had not, and the other way round.
func noteTools(changes *admin.Changes, old, now *configs.Config) {
	if old == nil {
		return
	}
	before, after := toolNames(old), toolNames(now)
	if names := without(after, before); len(names) > 0 {
		changes.Note(time.Now(), "tools", "new: "+listed(names))
	}
	if names := without(before, after); len(names) > 0 {
		changes.Note(time.Now(), "tools", "gone: "+listed(names))
	}
}

// noteQuarantine returns a function that holds tools back, and notes which are in quarantine and were not before, and
// the other way round. One call runs at a time.
func noteQuarantine(hold func(map[string]bool, map[string]time.Duration), changes *admin.Changes) func(map[string]bool, map[string]time.Duration) {
	var before []string
	return func(quarantined map[string]bool, starting map[string]time.Duration) {
		hold(quarantined, starting)
		now := slices.Sorted(maps.Keys(quarantined))
		if names := without(now, before); len(names) > 0 {
			changes.Note(time.Now(), "quarantined", listed(names))
		}
		if names := without(before, now); len(names) > 0 {
			changes.Note(time.Now(), "released", listed(names))
		}
		before = now
	}
}

// without returns the names that others do not have, which are sorted.
func without(names, others []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(n string) bool {
		_, there := slices.BinarySearch(others, n)
		return there
	})
}

// listed writes the first names of a list.
func listed(names []string) string {
	const most = 10
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}
