"""The cases of a run, printed as they end and written as JUnit."""

import sys
import xml.etree.ElementTree


class Report:
    def __init__(self, suite):
        self._suite = suite
        self._cases = []

    def case(self, name, problem=None):
        """`problem`: what was expected and what was found; None or "" when all is well."""
        self._cases.append((name, problem))
        if problem:
            print(f"FAILED: {name}: {problem}", file=sys.stderr, flush=True)

    def attempt(self, name, step):
        """A case from what step() returns; an exception of the outer world is a problem too."""
        try:
            self.case(name, step())
        except (OSError, RuntimeError, ValueError) as problem:
            self.case(name, str(problem))

    def counts(self):
        failed = sum(1 for _, problem in self._cases if problem)
        return len(self._cases) - failed, failed

    def write(self, path):
        suite = xml.etree.ElementTree.Element("testsuite", name=self._suite)
        for name, problem in self._cases:
            case = xml.etree.ElementTree.SubElement(suite, "testcase", name=name)
            if problem:
                xml.etree.ElementTree.SubElement(case, "failure", message=problem)
        xml.etree.ElementTree.ElementTree(suite).write(path, encoding="unicode")
