package main

import (
	"log/slog"

	"github.com/callgate/callgate/app"
	"github.com/callgate/callgate/cmd/callgate/internal/cmdenv"
)

// warningLog is a log for people: events in the background, on standard
// error, where it is worth a line.
func warningLog(e cmdenv.Env) *slog.Logger {
	return slog.New(slog.NewTextHandler(e.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// runtimeOptions are those of a runtime of this process.
func runtimeOptions(e cmdenv.Env, logger *slog.Logger) app.Options {
	b := built()
	return app.Options{Logger: logger, Version: b.version, Revision: b.commit, Wait: e.Wait, DrainDelay: e.DrainDelay, ChangeDeps: e.ChangeParts}
}
