"""`python -m ...rattler_install --channel URL PREFIX SPEC...`: solve and install conda packages by py-rattler."""

from __future__ import annotations

import argparse
import asyncio
import sys


async def _install(channel: str, prefix: str, specs: list[str]) -> None:
    from rattler import VirtualPackage, install, solve

    # "ignore": a channel of one's own need not have the time stamps that conda-forge's packages have.
    records = await solve(sources=[channel], specs=specs, virtual_packages=VirtualPackage.detect())
    for record in sorted(records, key=lambda record: record.name.normalized):
        print(f"  {record.name.normalized} {record.version} {record.build}", flush=True)
    await install(records=records, target_prefix=prefix, show_progress=False)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--channel", required=True)
    parser.add_argument("prefix")
    parser.add_argument("specs", nargs="+")
    given = parser.parse_args()
    try:
        asyncio.run(_install(given.channel, given.prefix, given.specs))
    except Exception as error:  # noqa: BLE001 - py-rattler has an exception of its own for each layer
        print(f"ERROR: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
