"""python -m lab.models: see `command`."""

import sys

from lab.models.command import main

sys.exit(main())
