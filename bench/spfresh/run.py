"""The recipe, beside LanceDB: ``python bench/spfresh/run.py --help``."""

from compare_recipe import main

if __name__ == "__main__":
    main()
