//go:build noconsole

package app

import (
	"log/slog"

	"github.com/callgate/callgate/gateway/admin"
)

// hasConsole says that this binary was built with the console.
const hasConsole = false

// newConsole returns nothing: html/template finds methods by name, so that the linker keeps
// every method of a binary that has it, about 15 MiB.
func newConsole(_ *admin.API, _ bool, logger *slog.Logger) ([]ownHandler, error) {
	logger.Warn("this binary was built without the console (tag noconsole); server.console has no effect")
	return nil, nil
}
