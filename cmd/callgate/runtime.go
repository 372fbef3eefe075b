package main

import (
	"log/slog"

	"github.com/callgate/callgate/app"
)

// warningLog is a log for people: events in the background, on standard
// error, where it is worth a line.
func warningLog(e env) *slog.Logger {
	return slog.New(slog.NewTextHandler(e.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// runtimeOptions are those of a runtime of this process.
func runtimeOptions(e env, logger *slog.Logger) app.Options {
	b := built()
	return app.Options{Logger: logger, Version: b.version, Revision: b.commit, Wait: e.Wait, DrainDelay: e.DrainDelay,
		ChangeDeps: e.ChangeParts}
}
