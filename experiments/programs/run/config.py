"""A store of settings: each change is written beside the file, synced, renamed over it."""

import json
import os

settings = {f"key{number}": number for number in range(40)}
for change in range(60):
    settings[f"key{change % 40}"] = change * 7919
    with open("settings.new", "w") as file:
        json.dump(settings, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    os.rename("settings.new", "settings.json")
    folder = os.open(".", os.O_RDONLY | os.O_DIRECTORY)
    os.fsync(folder)
    os.close(folder)
